/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0 */

/* Plugins that are wrong in one way each, chosen by FAULT_... when this is compiled; and one that is right. None is opened. */
#include <stddef.h>

#include "tutti/transport.h"

#ifndef PLUGIN_NAME
#define PLUGIN_NAME "good"
#endif

static tutti_status_t fail_open(const tutti_tp_open_t* a, tutti_tp_endpoint_t** b) { return (void)a, (void)b, TUTTI_ERR_SYSTEM; }
static tutti_status_t fail_address(tutti_tp_endpoint_t* a, void* b, size_t c, size_t* d) {
  return (void)a, (void)b, (void)c, (void)d, TUTTI_ERR_SYSTEM;
}
static tutti_status_t fail_set_peer(tutti_tp_endpoint_t* a, uint32_t b, const void* c, size_t d) {
  return (void)a, (void)b, (void)c, (void)d, TUTTI_ERR_SYSTEM;
}
static tutti_status_t fail_start(tutti_tp_endpoint_t* a) { return (void)a, TUTTI_ERR_SYSTEM; }
static tutti_status_t fail_link(tutti_tp_endpoint_t* a, uint32_t b, tutti_tp_link_t* c) {
  return (void)a, (void)b, (void)c, TUTTI_ERR_SYSTEM;
}
static tutti_status_t fail_connect(tutti_tp_endpoint_t* a, uint32_t b) { return (void)a, (void)b, TUTTI_ERR_SYSTEM; }
static void ignore_endpoint(tutti_tp_endpoint_t* a) { (void)a; }
static void ignore_cut(tutti_tp_endpoint_t* a, uint32_t b) { (void)a, (void)b; }
static tutti_status_t fail_channel_open(tutti_tp_endpoint_t* a, uint32_t b, uint64_t c, int d, int e, tutti_tp_channel_t** f) {
  return (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, TUTTI_ERR_SYSTEM;
}
static void ignore_channel(tutti_tp_channel_t* a) { (void)a; }
static tutti_status_t fail_send(tutti_tp_channel_t* a, const void* b, uint64_t c, uint32_t d, tutti_tp_op_t* e) {
  return (void)a, (void)b, (void)c, (void)d, (void)e, TUTTI_ERR_SYSTEM;
}
#ifndef FAULT_MISSING_FUNCTION
static tutti_status_t fail_recv(tutti_tp_channel_t* a, void* b, uint64_t c, tutti_tp_op_t* d) {
  return (void)a, (void)b, (void)c, (void)d, TUTTI_ERR_SYSTEM;
}
#endif
static tutti_status_t fail_notify(tutti_tp_endpoint_t* a, uint32_t b, const void* c, size_t d) {
  return (void)a, (void)b, (void)c, (void)d, TUTTI_ERR_SYSTEM;
}
static uint32_t no_progress(tutti_tp_endpoint_t* a) { return (void)a, 0u; }
static int no_fd(tutti_tp_endpoint_t* a) { return (void)a, -1; }

static const tutti_tp_table_t table = {
#ifdef FAULT_STRUCT_SIZE
    .struct_size = (uint32_t)((int)sizeof(tutti_tp_table_t) + FAULT_STRUCT_SIZE),
#else
    .struct_size = sizeof(tutti_tp_table_t),
#endif
#ifdef FAULT_ABI_VERSION
    .abi_version = (uint32_t)(TUTTI_TP_ABI_VERSION + FAULT_ABI_VERSION),
#else
    .abi_version = TUTTI_TP_ABI_VERSION,
#endif
    .name = PLUGIN_NAME,
    .description = "does nothing",
#ifdef FAULT_CAPS
    .caps = FAULT_CAPS,
#else
    .caps = TUTTI_TP_CAP_MESSAGES,
#endif
    .open = fail_open,
    .address = fail_address,
    .set_peer = fail_set_peer,
    .start = fail_start,
    .link = fail_link,
    .connect = fail_connect,
    .close = ignore_endpoint,
    .cut = ignore_cut,
    .channel_open = fail_channel_open,
    .channel_close = ignore_channel,
    .post_send = fail_send,
#ifndef FAULT_MISSING_FUNCTION
    .post_recv = fail_recv,
#endif
    .notify = fail_notify,
    .progress = no_progress,
    .fd = no_fd,
    .arm = ignore_endpoint,
    .disarm = ignore_endpoint,
};

#ifdef FAULT_NO_SYMBOL
#define ENTRY tutti_transport_entry_of_another_library
#else
#define ENTRY tutti_transport_entry
#endif

#ifdef FAULT_UNDEFINED
extern int tutti_symbol_of_nobody(void);
#endif

__attribute__((visibility("default"))) const tutti_tp_table_t* ENTRY(uint32_t host_abi_version);
const tutti_tp_table_t* ENTRY(uint32_t host_abi_version) {
#ifdef FAULT_UNDEFINED
  if (tutti_symbol_of_nobody()) return NULL;
#endif
#ifdef FAULT_NULL
  return (void)host_abi_version, (void)table, NULL;
#else
  return (void)host_abi_version, &table;
#endif
}
