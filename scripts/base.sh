#!/usr/bin/env bash
# Print the commit since which changes are looked at closely: the merge base with the main branch or,
# on that branch itself, the last commit of six hours before the newest. Nothing where git cannot
# tell.
set -u
head=$(git rev-parse --verify -q HEAD) || exit 0
for branch in origin/HEAD origin/main main; do
  base=$(git merge-base HEAD "$branch" 2>/dev/null) && break
done
if [ "${base:-$head}" = "$head" ]; then
  since=$(($(git log -1 --format=%ct) - 6 * 3600))
  base=$(git rev-list -1 --before="$since" HEAD)
fi
echo "$base"
