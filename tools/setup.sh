# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034  # `program` comes from, and `build_needs` is for, those who source this
#
# What tools/quickstart and tools/check share; sourced by them. They set `program` and list their needs as lines
# "package|what it is for|command that succeeds if it is there".

say() { printf '%s: %s\n' "$program" "$*"; }
fail() {
  printf '%s: %s\n' "$program" "$*" >&2
  exit 1
}

# The lines of $1 whose probe fails.
missing_of() {
  local line
  while IFS= read -r line; do
    [ -n "$line" ] || continue
    bash -c "${line##*|}" >/dev/null 2>&1 || printf '%s\n' "$line"
  done <<<"$1"
}

packages_of() { cut -d'|' -f1 <<<"$1" | tr '\n' ' ' | sed 's/ *$//'; }

# Runs apt-get as root, with at most one `apt-get update`: only if the lists do not know the packages yet.
apt_install() {
  local -a apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  if [ "$(id -u)" -ne 0 ]; then apt=(sudo "${apt[@]}"); fi
  local log
  log=$(mktemp)
  if "${apt[@]}" install -y --no-install-recommends "$@" >"$log" 2>&1 ||
    { "${apt[@]}" update >"$log" 2>&1 && "${apt[@]}" install -y --no-install-recommends "$@" >"$log" 2>&1; }; then
    rm -f "$log"
    return 0
  fi
  tail -n 3 "$log" >&2
  rm -f "$log"
  return 1
}

# Installs what is missing of the needs in $1, saying what and why; ends the script with one line if that is not possible.
install_needs() {
  local missing packages
  missing=$(missing_of "$1")
  [ -n "$missing" ] || return 0
  packages=$(packages_of "$missing")
  if ! command -v apt-get >/dev/null; then
    fail "missing, and this system has no apt-get to install them: $packages (names as in Debian 12). Install them and run again."
  fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "missing: $packages. Neither root nor sudo: run as root 'apt-get install $packages', then this again."
    if ! [ -t 0 ] && ! sudo -n true 2>/dev/null; then
      fail "missing: $packages. sudo wants a password and there is no terminal: run 'sudo apt-get install $packages', then this again."
    fi
  fi
  say "installing, by apt-get:"
  local package reason
  while IFS='|' read -r package reason _; do printf '  %-24s %s\n' "$package" "$reason"; done <<<"$missing"
  # shellcheck disable=SC2086  # one word a package
  apt_install $packages || fail "apt-get could not install: $packages. Its last words are above."
  missing=$(missing_of "$missing")
  [ -z "$missing" ] || fail "installed, but still not usable: $(packages_of "$missing")"
}

# configure BUILD_DIR OPTION...: sets the build up, or brings an existing one to these options; silent if nothing is to do.
configure() {
  local build=$1
  shift
  local wanted="$*" stamp="$build/.tutti-options" log
  if [ -f "$build/build.ninja" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return 0; fi
  log=$(mktemp)
  local -a mode=()
  if [ -f "$build/build.ninja" ]; then mode=(--reconfigure); elif [ -d "$build/meson-private" ]; then mode=(--wipe); fi
  say "configuring $build"
  if ! meson setup "${mode[@]}" "$@" "$build" . >"$log" 2>&1; then
    grep -a 'ERROR' "$log" >&2 || tail -n 5 "$log" >&2
    rm -f "$log"
    fail "Meson could not configure $build (its words are above; 'rm -r $build' starts afresh)."
  fi
  rm -f "$log"
  printf '%s\n' "$wanted" >"$stamp"
}

# build BUILD_DIR [TARGET...]: silent if nothing is to do; with progress on a terminal; the compiler's words if it fails.
build() {
  local build=$1
  shift
  case $(ninja -C "$build" -n "$@" 2>&1 | tail -n 1) in
    *'no work to do.') return 0 ;;
  esac
  say "building in $build, with $(nproc) jobs at a time"
  local -a quiet=(--quiet)
  if [ -t 1 ]; then quiet=(); fi
  ninja -C "$build" "${quiet[@]}" "$@" || fail "the build failed; the compiler's words are above."
}

# What every build of Tutti needs, and hwloc, which it can do without.
build_needs='g++|compiles Tutti (C++20)|command -v c++
meson|configures the build|command -v meson
ninja-build|runs the build|command -v ninja
pkg-config|finds the libraries below|command -v pkg-config
libfmt-dev|formats messages|pkg-config --exists fmt
libspdlog-dev|writes the log|pkg-config --exists spdlog
libsodium-dev|authenticates connections|pkg-config --exists libsodium
libcli11-dev|options of the command-line tools|pkg-config --exists CLI11
nlohmann-json3-dev|reads and writes JSON|pkg-config --exists nlohmann_json
libhwloc-dev|names the devices in tutti-info topology|pkg-config --exists hwloc'
