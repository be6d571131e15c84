#!/usr/bin/env bash
# licences.sh PROGRAM FOLDER: into FOLDER the licences of the Debian packages whose shared libraries PROGRAM loads, but those of
# the C and C++ runtimes, which a wheel does not take along. Elsewhere than on Debian it writes nothing.
set -euo pipefail
program=$1 folder=$2
command -v dpkg-query >/dev/null || exit 0
mkdir -p "$folder"
ldd "$program" | awk '$3 ~ /^\// {print $3}' | while read -r library; do
  file=$(readlink -f "$library")
  # Packages may still name /lib, which is a link to /usr/lib now.
  package=$(dpkg-query -S "*${file#/usr}" 2>/dev/null | head -n 1 | cut -d: -f1)
  case $package in '' | libc6 | libgcc-s1 | libstdc++6) continue ;; esac
  cp "/usr/share/doc/$package/copyright" "$folder/$package"
done
