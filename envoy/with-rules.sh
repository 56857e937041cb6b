#!/bin/sh
# Prints envoy/envoy.yaml with the filter's configuration that FILE holds (service, rules and so on) in place of its own:
#
#   sh envoy/with-rules.sh FILE > my-envoy.yaml
set -eu
test -r "$1" || { echo "with-rules.sh: can't read $1" >&2; exit 1; }
awk -v rules="$1" '
    inside && NF { match($0, /^ */); inside = RLENGTH > indent }
    inside { next }
    { print }
    $0 ~ /^ *value:$/ {
        match($0, /^ */); indent = RLENGTH; inside = 1
        while ((getline line < rules) > 0) printf "%*s%s\n", indent + 2, "", line
    }
' "$(dirname "$0")/envoy.yaml"
