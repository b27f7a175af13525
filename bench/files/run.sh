#!/bin/sh
# Files of the host under the hosted machine against Linux, in turns; the best of all rounds counts.
# usage: bench/files/run.sh [ROUNDS]; needs gcc and a built target/release/synth. Prints a table of nanoseconds and ratios.
set -eu
cd "$(dirname "$0")/../.."
folder=$PWD/target/bench/files
mkdir -p "$folder/a/b/c/d"
: > "$folder/a/b/c/d/f"
gcc -O2 -static -o "$folder/files" bench/files/files.c
rm -f "$folder/linux" "$folder/hosted"
for round in $(seq "${1:-3}"); do
    "$folder/files" "$folder" >> "$folder/linux"
    (cd "$folder" && "$OLDPWD/target/release/synth" run --hosted --timeout 60 ./files "$folder") >> "$folder/hosted"
done
paste -d' ' "$folder/linux" "$folder/hosted" |
    awk '{ if (!($1 in l) || $2 < l[$1]) l[$1] = $2; if (!($1 in h) || $4 < h[$1]) h[$1] = $4; if (!s[$1]++) o[++n] = $1 }
         END { print "| call | Linux ns | hosted ns | ratio |\n|---|--:|--:|--:|"
               for (i = 1; i <= n; i++) { c = o[i]; printf "| %s | %d | %d | %.2f |\n", c, l[c], h[c], h[c] / l[c] } }'
