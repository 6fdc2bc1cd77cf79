#!/usr/bin/env bash
# Print the commit since which changes are looked at closely: the merge base with the main branch or,
# on that branch itself, twenty commits ago. Nothing where git cannot tell.
set -u
head=$(git rev-parse --verify -q HEAD) || exit 0
for branch in origin/HEAD origin/main main; do
  base=$(git merge-base HEAD "$branch" 2>/dev/null) && break
done
[ "${base:-$head}" != "$head" ] || base=$(git rev-parse --verify -q HEAD~20)
echo "$base"
