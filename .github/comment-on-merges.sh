#!/bin/bash
# A comment on each pull request that a night blames, which later nights bring up to date.
#   comment-on-merges.sh night.json night.md URL
# Asks gh, which takes GH_TOKEN; GITHUB_REPOSITORY is OWNER/NAME. Says where it may not write.
set -euo pipefail
night=$1 text=$2 url=$3
test -f "$night" || exit 0

blamed='import json, sys
for alert in json.load(open(sys.argv[1]))["alerts"]:
    if any(each["is_regression"] for each in alert["changes"]):
        print(alert["commit"])'

tell() {
  local commit=$1 repo="repos/$GITHUB_REPOSITORY" number marker known
  number=$(gh api "$repo/commits/$commit/pulls" --jq '.[0].number // empty') || return
  test -n "$number" || return 0
  marker="<!-- blamed by a night: $commit -->"
  { echo "$marker"; echo "[A night]($url) blames this merge, $commit."; echo; head -c 60000 "$text"; } \
    > comment.md
  known=$(gh api --paginate "$repo/issues/$number/comments" \
    --jq ".[] | select(.body | startswith(\"$marker\")).id" | sed -n 1p) || return
  if test -n "$known"; then
    gh api --silent --method PATCH "$repo/issues/comments/$known" --field body=@comment.md
  else
    gh api --silent --method POST "$repo/issues/$number/comments" --field body=@comment.md
  fi
}

for commit in $(python3 -c "$blamed" "$night"); do
  tell "$commit" || echo "::warning title=nightly::no comment: the token may not write one"
done
