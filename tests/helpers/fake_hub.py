"""A Hugging Face Hub on 127.0.0.1: the part of its HTTP interface that huggingface_hub uses here.

Repositories are in memory. Files ending in .safetensors or .hdf5 are large files (LFS): they are
uploaded by the LFS protocol, and downloaded through a redirect with the SHA-256 as linked ETag.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

LARGE = (".safetensors", ".hdf5")
TOKEN = "hf_secret"


@dataclass
class Repository:
    """Commits by their hash, each a dictionary of files, and branches and tags."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    private: bool = False

    def commit(
        self, files: dict[str, bytes], branch: str = "main", deleted: Sequence[str] = ()
    ) -> str:
        before = self.commits.get(self.refs.get(branch, ""), {})
        text = f"{len(self.commits)} {branch} {sorted(files)}"
        name = hashlib.sha1(text.encode()).hexdigest()
        kept = {path: content for path, content in before.items() if path not in deleted}
        self.commits[name] = kept | files
        self.refs[branch] = name
        return name


class FakeHub:
    """The server; ``repositories`` by name, and ``requests`` as (method, path) in order."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.requests: list[tuple[str, str]] = []
        self.blobs: dict[str, bytes] = {}
        self.served: dict[str, bytes] = {}
        """Content that is sent in place of a large file with some SHA-256."""
        self.url = ""

    def add(self, name: str, folder, private: bool = False) -> str:
        """Put the files of a folder into a new repository; the commit."""
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        repository = self.repositories[name] = Repository(private=private)
        return repository.commit(files)

    def files(self, name: str, revision: str = "main") -> dict[str, bytes]:
        repository = self.repositories[name]
        return repository.commits[repository.refs[revision]]


@contextmanager
def running_hub():
    """Run a hub in a thread."""
    hub = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: _Handler(hub, *args))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, hub: FakeHub, *args) -> None:
        self.hub = hub
        super().__init__(*args)

    def log_message(self, *args) -> None:
        pass

    def do_GET(self) -> None:
        path = self._started()
        if path.startswith("/lfs/"):
            checksum = path.removeprefix("/lfs/")
            content = self.hub.served.get(checksum, self.hub.blobs.get(checksum, b""))
            return self._send(200, content, {"ETag": f'"{checksum}"'})
        if path.startswith("/api/models/"):
            user, name, *rest = path.removeprefix("/api/models/").split("/")
            if (found := self._find(f"{user}/{name}", rest[1] if rest else "main")) is None:
                return None
            commit, files = found
            if rest[:1] == ["tree"]:
                return self._send_json([_entry(n, c) for n, c in sorted(files.items())])
            siblings = [_sibling(name, content) for name, content in sorted(files.items())]
            private = self.hub.repositories[f"{user}/{name}"].private
            values = {"id": f"{user}/{name}", "sha": commit, "private": private, "tags": []}
            return self._send_json({**values, "siblings": siblings, "downloads": 0, "likes": 0})
        parts = path[1:].split("/")
        if parts[2:3] != ["resolve"]:
            return self._send(404)
        user, name, _, revision, *rest = parts
        if (found := self._find(f"{user}/{name}", revision)) is None:
            return None
        commit, files = found
        headers = {"X-Repo-Commit": commit}
        if (content := files.get("/".join(rest))) is None:
            return self._send(404, b"", {**headers, "X-Error-Code": "EntryNotFound"})
        checksum = hashlib.sha256(content).hexdigest()
        if rest[-1].endswith(LARGE):
            self.hub.blobs[checksum] = content
            headers |= {"X-Linked-Etag": f'"{checksum}"', "X-Linked-Size": str(len(content))}
            # another name of this machine, as the Hub has its large files on another host
            storage = self.hub.url.replace("127.0.0.1", "localhost")
            return self._send(302, b"", {**headers, "Location": f"{storage}/lfs/{checksum}"})
        return self._send(200, content, {**headers, "ETag": f'"{_git_hash(content)}"'})

    do_HEAD = do_GET  # noqa: N815

    def do_PUT(self) -> None:
        path = self._started()
        content = self._body()
        self.hub.blobs[path.removeprefix("/upload/")] = content
        self._send(200)

    def do_POST(self) -> None:
        path, body = self._started(), self._body()
        if path == "/api/validate-yaml":
            return self._send_json({"errors": [], "warnings": []})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._send_json({"error": "Invalid username or password."}, 401)
        if path == "/api/repos/create":
            values = json.loads(body)
            name = f"{values['organization']}/{values['name']}"
            known = name in self.hub.repositories
            if not known:
                private = bool(values.get("private")) or values.get("visibility") == "private"
                self.hub.repositories[name] = Repository(private=private)
                self.hub.repositories[name].commit({".gitattributes": b"*.safetensors filter=lfs"})
            return self._send_json({"url": f"{self.hub.url}/{name}"}, 409 if known else 200)
        if path.endswith(".git/info/lfs/objects/batch"):
            objects = [
                {**o, "actions": {"upload": {"href": f"{self.hub.url}/upload/{o['oid']}"}}}
                for o in json.loads(body)["objects"]
            ]
            return self._send_json({"transfer": "basic", "objects": objects})
        user, name, verb, *rest = path.removeprefix("/api/models/").split("/")
        repository, branch = self.hub.repositories[f"{user}/{name}"], "/".join(rest)
        if verb == "branch":
            known = branch in repository.refs
            repository.refs.setdefault(branch, repository.refs["main"])
            return self._send_json({}, 409 if known else 200)
        if verb == "preupload":
            files = [
                {"path": f["path"], "shouldIgnore": False,
                 "uploadMode": "lfs" if f["path"].endswith(LARGE) else "regular"}
                for f in json.loads(body)["files"]
            ]  # fmt: skip
            return self._send_json({"files": files})
        assert verb == "commit"
        added, deleted = {}, []
        for line in body.splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "file":
                added[value["path"]] = base64.b64decode(value["content"])
            elif item["key"] == "lfsFile":
                added[value["path"]] = self.hub.blobs[value["oid"]]
            elif item["key"] == "deletedFile":
                deleted.append(value["path"])
        commit = repository.commit(added, branch, deleted)
        url = f"{self.hub.url}/{user}/{name}/commit/{commit}"
        return self._send_json({"commitUrl": url, "commitOid": commit})

    def _find(self, name: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """The commit and its files; None after an answer that says what is missing."""
        repository = self.hub.repositories.get(name)
        allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if repository is None or (repository.private and not allowed):
            # the Hub does not tell strangers which private repositories exist
            self._send_json({"error": "Repository not found"}, 401, "RepoNotFound")
            return None
        commit = repository.refs.get(unquote(revision), revision)
        if commit not in repository.commits:
            self._send_json({"error": "Invalid rev id"}, 404, "RevisionNotFound")
            return None
        return commit, repository.commits[commit]

    def _started(self) -> str:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append((self.command, path))
        return path

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send_json(self, values: object, status: int = 200, code: str | None = None) -> None:
        headers = {"Content-Type": "application/json"}
        self._send(
            status,
            json.dumps(values).encode(),
            headers | ({"X-Error-Code": code, "X-Error-Message": code} if code else {}),
        )

    def _send(self, status: int, content: bytes = b"", headers: dict | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _lfs(content: bytes) -> dict[str, object]:
    return {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}


def _entry(name: str, content: bytes) -> dict[str, object]:
    values = {"type": "file", "path": name, "size": len(content), "oid": _git_hash(content)}
    return values | ({"lfs": _lfs(content)} if name.endswith(LARGE) else {})


def _sibling(name: str, content: bytes) -> dict[str, object]:
    lfs = _lfs(content)
    lfs["sha256"] = lfs.pop("oid")
    values = {"rfilename": name, "size": len(content), "blobId": _git_hash(content)}
    return values | ({"lfs": lfs} if name.endswith(LARGE) else {})
