#!/usr/bin/env bash
# The steps of action.yml: validates logs, checks their messages against shapes, and writes into the summary of the job
# how they differ from those of another commit. Fails if a log is malformed or a message does not conform.
#
# LOGS, SHAPES: patterns of paths, separated by spaces; BASE: the commit, empty: nothing is compared. The runner sets
# GITHUB_STEP_SUMMARY and GITHUB_OUTPUT.
set -uo pipefail
shopt -s globstar nullglob

summary=${GITHUB_STEP_SUMMARY:-/dev/stdout}
output=${GITHUB_OUTPUT:-/dev/null}
most=200 # lines of a difference that are shown
failed=0

# unquoted: the patterns are to be expanded
# shellcheck disable=SC2206
logs=($LOGS) shapes=($SHAPES)
if [ ${#logs[@]} -eq 0 ]; then
  echo "::error::no log matches $LOGS"
  exit 1
fi
if [ -n "$SHAPES" ] && [ ${#shapes[@]} -eq 0 ]; then
  echo "::error::no file with shapes matches $SHAPES"
  exit 1
fi

well_formed=()
for log in "${logs[@]}"; do
  if said=$(construct-messages validate "$log" 2>&1); then
    echo "$said"
    well_formed+=("$log")
  else
    # a line feed would end the annotation
    echo "::error file=$log::${said//$'\n'/%0A}"
    failed=1
  fi
done

if [ ${#shapes[@]} -gt 0 ]; then
  options=()
  for file in "${shapes[@]}"; do options+=(--shapes "$file"); done
  for log in ${well_formed[@]+"${well_formed[@]}"}; do
    if ! said=$(construct-messages convert "$log" --output - "${options[@]}" 2>&1 >/dev/null); then
      echo "::error file=$log::${said//$'\n'/%0A}"
      failed=1
    fi
  done
fi

changed=()
if [ -n "$BASE" ]; then
  git cat-file -e "$BASE" 2>/dev/null || git fetch --quiet --depth 1 origin "$BASE"
  before=$(mktemp -d)
  trap 'rm -rf "$before"' EXIT
  for log in ${well_formed[@]+"${well_formed[@]}"}; do
    mkdir -p "$before/$(dirname "$log")"
    # `:./` is relative to the working directory
    if ! git show "$BASE:./$log" >"$before/$log" 2>/dev/null; then
      echo "### \`$log\` is new" >>"$summary"
      changed+=("$log")
      continue
    fi
    difference=$(construct-messages diff "$before/$log" "$log" 2>&1)
    status=$?
    [ $status -eq 0 ] && continue
    changed+=("$log")
    {
      echo "### \`$log\`"
      echo '````diff'
      head -n "$most" <<<"${difference//"$before/"/before: }"
      echo '````'
      lines=$(wc -l <<<"$difference")
      if [ "$lines" -gt "$most" ]; then echo "… and $((lines - most)) more lines"; fi
    } >>"$summary"
    if [ $status -gt 1 ]; then
      echo "::error file=$log::it cannot be compared with that of $BASE"
      failed=1
    fi
  done
fi
{
  echo "changed<<END_OF_LOGS"
  printf '%s\n' ${changed[@]+"${changed[@]}"}
  echo "END_OF_LOGS"
} >>"$output"
exit $failed
