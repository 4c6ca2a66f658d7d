#!/usr/bin/env bash
# A pull worker for the action `write-letters`: bash, curl and jq.
set -euo pipefail

# Posts, and comes again while the service is busy, restarts or cannot be reached: every call bears that.
call() {
    local answer status
    while true; do
        answer=$(curl --silent --max-time 60 --write-out '\n%{http_code}' \
            --header @<(printf 'Authorization: Bearer %s' "$TASKBELL_KEY") --header 'Content-Type: application/json' \
            --data-binary @<(printf '%s' "$2") "${TASKBELL_URL%/}/api/v1/worker/$1") || answer=$'\n000'
        status=${answer##*$'\n'}
        answer=${answer%$'\n'*}
        case $status in
            200) if jq --exit-status . <<<"$answer" >/dev/null 2>&1; then printf '%s' "$answer" && return; fi ;;
            000 | 408 | 429 | 5??) ;;
            *) echo "$1: $status $answer" >&2 && exit 1 ;;
        esac
        sleep 1
    done
}

# Says something about the chunk at hand; notes what came back in the file `stands`.
say() {
    local body
    body=$(jq --null-input --compact-output --argjson name "$name" --argjson more "$2" '{items: [$name + $more]}')
    call "$1" "$body" | jq --raw-output '.items[0].result' >"$stands.new"
    mv "$stands.new" "$stands"
}

keep() {
    while sleep "$every"; do say renew '{}'; done
}

# One bounded step, from the checkpoint on; prints the outcome. Must bear a repetition.
work() {
    local count start at end
    count=$(jq '.task.params.count // 100' <<<"$1")
    start=$(jq '.checkpoint.next // 0' <<<"$1")
    end=$((start + 20 < count ? start + 20 : count))
    at=$start
    while ((at < end)) && [[ $(<"$stands") == ok ]]; do
        sleep 0.01 # Letter number $at is written here.
        at=$((at + 1))
    done
    jq --null-input --compact-output --argjson start "$start" --argjson at "$at" --argjson count "$count" \
        '{current: $at, total: $count, unit: "letters", rows: {ok: ($at - $start)}, log: ["\($at) letters are written"]} +
        if $at < $count then {hasMore: true, checkpoint: {next: $at}} else {hasMore: false, result: {written: $count}} end'
}

stands=$(mktemp)
keeper=
ending=
trap 'rm -f "$stands" "$stands.new"; [[ -z $keeper ]] || kill "$keeper" 2>/dev/null || true' EXIT
trap 'ending=yes' TERM INT
while [[ -z $ending ]]; do
    answer=$(call claim "{\"actions\":[\"write-letters\"],\"waitMs\":20000,\"worker\":\"letters:$$\"}")
    chunk=$(jq --compact-output '.chunks[0] // empty' <<<"$answer")
    [[ -n $chunk ]] || continue
    name=$(jq --compact-output '{task: .task.id, fencingToken, chunk}' <<<"$chunk")
    every=$(jq '.leaseMs / 3000' <<<"$chunk")
    echo ok >"$stands"
    keep &
    keeper=$!
    outcome=$(work "$chunk")
    kill "$keeper" 2>/dev/null || true
    wait "$keeper" 2>/dev/null || true
    keeper=
    [[ $(<"$stands") == stale ]] || say commit "$(jq --null-input --compact-output --argjson outcome "$outcome" '{outcome: $outcome}')"
done
