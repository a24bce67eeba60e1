# shellcheck shell=sh
# Messages, and how wrong words on the command line are answered.
: "${root:?}" # set by ./fusebook

say() { printf '%s\n' "$*"; }
step() { printf '\n==> %s\n' "$*"; }
complain() { printf 'fusebook: %s\n' "$*" >&2; }
fail() { # STATUS MESSAGE
  status=$1
  shift
  complain "$*"
  exit "$status"
}
have() { command -v "$1" >/dev/null 2>&1; }

unknown() { # KIND WORD KNOWN...
  kind=$1 word=$2
  shift 2
  near=
  ! find_python || near=$("${python:-}" -c 'import difflib, sys
print(*difflib.get_close_matches(sys.argv[1], sys.argv[2:], 1))' "$word" "$@")
  hint=
  [ -z "$near" ] || hint=" Did you mean '$near'?"
  fail 2 "unknown $kind '$word'.$hint Known: $*"
}

no_more() { # COMMAND WORDS-LEFT...
  command=$1
  shift
  [ $# -eq 0 ] || fail 2 "'$command' does not take '$1'; see ./fusebook help"
}
