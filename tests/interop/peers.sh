# What the scripts here share: where things are, and the installation of the peers.

root=$(cd "$here/../.." && pwd)
cache=$here/.cache
log=$cache/log
modules=$cache/node_modules

# The versions of the Python package that had these revisions for their newest, and
# one that they need of another.
declare -A old=([py-2024-11-05]=1.6.0 [py-2025-03-26]=1.9.4 [py-2025-06-18]=1.12.4)
pydantic=2.10.6
fastmcp=4.2.3

install() {
    mkdir -p "$cache" "$log" || return
    # The scripts run where their packages are found.
    cp "$here"/*.mjs "$cache" || return
    if ! cmp -s "$here/package-lock.json" "$cache/package-lock.json" || [ ! -d "$modules" ]; then
        cp "$here/package.json" "$cache" || return
        cp "$here/package-lock.json" "$cache/package-lock.json" || return
        (cd "$cache" && npm ci --no-audit --no-fund >&2) || { rm -f "$cache/package-lock.json"; return 1; }
    fi
    if ! cmp -s "$here/requirements.txt" "$cache/requirements.txt"; then
        python3 -m venv --clear "$cache/venv" || return
        "$cache/venv/bin/pip" install -q -r "$here/requirements.txt" >&2 || return
        cp "$here/requirements.txt" "$cache/requirements.txt"
    fi
    local name
    for name in "${!old[@]}"; do
        [ ! -x "$cache/$name/bin/python" ] || [ ! -f "$cache/$name/${old[$name]}" ] || continue
        python3 -m venv --clear "$cache/$name" || return
        "$cache/$name/bin/pip" install -q "mcp==${old[$name]}" "pydantic==$pydantic" >&2 || return
        touch "$cache/$name/${old[$name]}"
    done
}

# Finds the binary, or builds it.
find_mcpx() {
    mcpx=${MCPX:-$root/target/release/mcpx}
    if [ -z "${MCPX:-}" ] && [ ! -x "$mcpx" ]; then
        (cd "$root" && CARGO_TARGET_DIR=$root/target cargo build --release -p mcpx >&2) || return
    fi
    [ -x "$mcpx" ] || { echo "there is no $mcpx" >&2; return 1; }
}
