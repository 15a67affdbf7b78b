#!/bin/sh
# A certificate authority of your own, and a certificate for the database's server:
#
#   sh certificates.sh FOLDER NAME_OR_IP…
#
# The names are those that workers have in their address. Each worker gets ca.crt, the server gets server.crt and
# server.key, and nobody gets ca.key: keep it where no service runs. Run again, it renews the server's certificate.
set -eu
[ $# -ge 2 ] || { echo "usage: sh certificates.sh FOLDER NAME_OR_IP…" >&2; exit 2; }
command -v openssl >/dev/null || { echo "certificates.sh: install openssl first" >&2; exit 1; }
umask 077
mkdir -p "$1"
cd "$1"
shift

names=
for name in "$@"; do
  case $name in
    *[!A-Za-z0-9.:*-]* | '') echo "certificates.sh: '$name' is neither a name nor an address" >&2; exit 2 ;;
    *:* | [0-9]*.[0-9]*.[0-9]*.*[0-9]) names="$names,IP:$name" ;;
    *) names="$names,DNS:$name" ;;
  esac
done

new_key() {
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
}

if [ ! -f ca.crt ]; then
  new_key ca.key
  openssl req -x509 -new -key ca.key -days 3650 -subj "/CN=Podium database authority" \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign" -out ca.crt
fi
new_key server.key
openssl req -new -key server.key -subj "/CN=Podium database" -out server.csr
printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n' "${names#,}" >server.ext
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 397 -extfile server.ext -out server.crt 2>server.log ||
  { cat server.log >&2; exit 1; }
rm server.csr server.ext server.log
chmod 644 ca.crt server.crt
