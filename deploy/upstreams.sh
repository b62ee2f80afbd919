#!/bin/sh
# Prints what nginx.conf includes for servers at these addresses: upstreams.sh HOST:PORT...
# Each is named by the start of its address's MD5 sum, so that names stay when other servers come and go.
set -eu

name() {
    printf %s "$1" | md5sum | cut -c 1-8
}

echo "upstream any {"
echo "    zone any 64k;"
for address in "$@"; do
    echo "    server $address max_fails=1 fail_timeout=5s;"
done
echo "}"

for address in "$@"; do
    echo "upstream server_$(name "$address") {"
    echo "    zone server_$(name "$address") 64k;"
    echo "    server $address max_fails=1 fail_timeout=5s;"
    for other in "$@"; do
        [ "$other" = "$address" ] || echo "    server $other backup;"
    done
    echo "}"
done

echo 'map $cookie_headsup_server $server {'
for address in "$@"; do
    echo "    $(name "$address") server_$(name "$address");"
done
echo "    default any;"
echo "}"

# The servers that were tried, separated by commas; the last one answered.
echo 'map $upstream_addr $answering_server {'
for address in "$@"; do
    echo "    \"~(^|[ ,])$(printf %s "$address" | sed 's/\./\\./g')\$\" $(name "$address");"
done
echo '    default "";'
echo "}"
