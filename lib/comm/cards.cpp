// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "cards.hpp"

#include <nlohmann/json.hpp>
#include <vector>

namespace tutti {
namespace {

using nlohmann::json;

json::binary_t binary(const std::string& text) { return json::binary_t(std::vector<uint8_t>(text.begin(), text.end())); }

std::string text_of(const json& value) {
  const json::binary_t& bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}

std::string pack(const json& value) {
  std::string text;
  json::to_msgpack(value, text);
  return text;
}

Status bad_card(uint32_t rank, const char* what) {
  return error(TUTTI_ERR_PROTOCOL, "the card of rank {} cannot be read ({}): do all ranks run the same version?", rank, what);
}

}  // namespace

std::string AddressCard::encode() const {
  json addresses_json = json::object();
  for (const auto& [name, address] : addresses) addresses_json[name] = binary(address);
  return pack({{"topology", binary(topology)}, {"settings", settings}, {"addresses", addresses_json}});
}

Result<AddressCard> AddressCard::decode(std::string_view text, uint32_t rank) {
  try {
    const json value = json::from_msgpack(text);
    AddressCard card;
    card.topology = text_of(value.at("topology"));
    card.settings = value.at("settings").get<std::map<std::string, std::string>>();
    for (const auto& [name, address] : value.at("addresses").items()) {
      card.addresses[name] = text_of(address);
    }
    return card;
  } catch (const json::exception& e) {
    return bad_card(rank, e.what());
  }
}

std::string StartCard::encode() const { return pack({{"started", started}, {"slot", min_slot_bytes}, {"node_slots", node_slots}}); }

Result<StartCard> StartCard::decode(std::string_view text, uint32_t rank) {
  try {
    const json value = json::from_msgpack(text);
    StartCard card;
    card.started = value.at("started").get<std::map<std::string, bool>>();
    card.min_slot_bytes = value.at("slot").get<uint64_t>();
    card.node_slots = value.at("node_slots").get<bool>();
    return card;
  } catch (const json::exception& e) {
    return bad_card(rank, e.what());
  }
}

}  // namespace tutti
