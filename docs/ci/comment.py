"""Keeps one comment of the gate under a pull request of GitHub or a merge request of GitLab.

comment.py FILE: the file's text becomes the comment. An empty file takes an earlier comment away. Without a request to comment on it
does nothing. A refusal, as of the token that a fork's pull request has, is a warning: the summary holds the result, too.

Calls of the API, GitHub's as an example (GitLab's are projects/ID/merge_requests/IID/notes, with PUT for PATCH):
  curl -H "Authorization: Bearer $GITHUB_TOKEN" $GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments
  curl -X POST  -d '{"body": "..."}' ... /issues/$NUMBER/comments
  curl -X PATCH -d '{"body": "..."}' ... /issues/comments/$ID
"""
import http.client
import json
import os
import sys
import urllib.request
from pathlib import Path

MARK = "<!-- windtunnel gate -->"


def places():
    """List of comments, one comment's prefix, method of an update, headers; none outside a request."""
    env = os.environ
    if env.get("CI_MERGE_REQUEST_IID"):
        notes = f"{env['CI_API_V4_URL']}/projects/{env['CI_PROJECT_ID']}/merge_requests/{env['CI_MERGE_REQUEST_IID']}/notes"
        return notes, notes, "PUT", {"PRIVATE-TOKEN": env.get("GITLAB_TOKEN", "")}
    if env.get("GITHUB_EVENT_PATH"):
        request = json.loads(Path(env["GITHUB_EVENT_PATH"]).read_text()).get("pull_request")
        if request:
            issues = f"{env.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{env['GITHUB_REPOSITORY']}/issues"
            headers = {"Authorization": f"Bearer {env.get('GITHUB_TOKEN', '')}", "Accept": "application/vnd.github+json"}
            return f"{issues}/{request['number']}/comments", f"{issues}/comments", "PATCH", headers
    return None


def main():
    text = Path(sys.argv[1]).read_text()
    found = places()
    if not found:
        return
    listed, one, update, headers = found

    def call(method, address, body=None):
        data = None if body is None else json.dumps({"body": body}).encode()
        request = urllib.request.Request(address, data, headers | {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.loads(reply.read() or "null")

    ours, page = [], 1
    while rows := call("GET", f"{listed}?per_page=100&page={page}"):
        ours += [row["id"] for row in rows if (row["body"] or "").startswith(MARK)]
        page += 1
    body = f"{MARK}\n{text}"
    if text.strip() and not ours:
        call("POST", listed, body)
    elif text.strip():
        call(update, f"{one}/{ours[0]}", body)
    for extra in ours[1:] if text.strip() else ours:
        call("DELETE", f"{one}/{extra}")


try:
    main()
except (OSError, http.client.HTTPException, ValueError, KeyError) as error:  # of HTTP, of a reply that is none of the API's
    print(f"comment.py: the comment could not be kept: {error!r}; may the token write to the request?", file=sys.stderr)
