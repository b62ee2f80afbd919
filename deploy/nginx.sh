#!/bin/sh
# Runs nginx, in a container, in front of all containers of the service "app", and follows them as they come and go.
# The folder of this script may be read-only; what nginx writes goes to /run/headsup.
set -eu
here=$(dirname "$0") folder=/run/headsup
mkdir -p "$folder/temporary"
cp "$here/nginx.conf" "$folder"

write_upstreams() {
    addresses=$(getent ahostsv4 app | awk '{print $1 ":8501"}' | sort -u)
    [ -n "$addresses" ] && sh "$here/upstreams.sh" $addresses > "$folder/upstreams.new"
}

until write_upstreams; do
    sleep 1
done
mv "$folder/upstreams.new" "$folder/upstreams.conf"

while sleep 5; do
    if write_upstreams && ! cmp -s "$folder/upstreams.new" "$folder/upstreams.conf"; then
        mv "$folder/upstreams.new" "$folder/upstreams.conf"
        nginx -p "$folder" -c "$folder/nginx.conf" -e stderr -s reload
    fi
done &

exec nginx -p "$folder" -c "$folder/nginx.conf" -e stderr
