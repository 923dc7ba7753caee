"""Models on the Hugging Face Hub: download a repository into the cache, upload a model.

Only files of known formats are downloaded, and nothing in a repository is executed. After the
download, every file is compared with its SHA-256: the one in SHA256SUMS, which :func:`upload`
writes, and the one that the Hub itself stores for large files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elmokit._version import __version__
from elmokit.errors import (
    ElmoKitError,
    FormatError,
    InputError,
    MissingExtraError,
    ModelNotFoundError,
    OutputError,
    shortened,
    shown,
)
from elmokit.formats import READERS, bundled_name, native
from elmokit.formats.checkpoint import MODEL_FILES, SUMS, Checkpoint
from elmokit.formats.model_card import model_card
from elmokit.formats.places import expanded, sources

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SUM = re.compile(r"([0-9a-f]{64}) [ *]([\w.-]+)")
_FILES = [
    *sorted(MODEL_FILES),
    *("*.json", "*.hdf5", "*weights*.h5", "*vocab*.txt", "*vocab*.txt.gz"),  # AllenNLP, NLPL
    *("weights.th", "best.th", "vocabulary/*.txt"),  # models of AllenNLP
    *("checkpoint", "model.ckpt-*"),  # trainings with bilm-tf
    *("*.zip", "*.tar.gz"),
    *("token_embedder.pkl", "encoder.pkl", "char.dic", "word.dic"),  # ELMoForManyLangs
]
_TABLE = re.compile(r"^\| parameters without softmax \|.*?^\| SHA-256 [^\n]*", re.S | re.M)
_LANGUAGES = {"english": "en", "english-hyphens": "en", "chinese": "zh"}  # by tokenizer
_BUNDLED_LICENSES = {"en": "cc-by-sa-4.0", "zh": "cc-by-sa-3.0"}  # also of what is made from them


def is_repository(model: object) -> bool:
    """Return whether a model is named as a repository, "user/model", and is no path that exists."""
    if not isinstance(model, str) or not _NAME.fullmatch(model):
        return False
    path = expanded(model)
    return not path.exists() and not Path(f"{path}.index").exists()  # of a checkpoint


def download(
    repository: str,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
    force_download: bool = False,
) -> Path:
    """Download a model and return its folder in the cache; what is there already is not downloaded.

    Args:
        repository: Its name, "user/model".
        revision: A branch, a tag or a commit. Default: the main branch.
        token: An access token, or False to send none. Default: the saved one.
        cache_dir: The cache. Default: that of huggingface_hub.
        local_files_only: Take the model from the cache, without the network.
        force_download: Download all files again.
    """
    hub = _huggingface_hub(f"Downloading {shown(repository)}, for which there is no folder,")
    user_agent = {"library_name": "elmokit", "library_version": __version__}
    with _clear_errors(hub, repository, revision, "download", ModelNotFoundError):
        folder = Path(
            hub.snapshot_download(
                repository,
                revision=revision,
                token=token,
                cache_dir=cache_dir,
                local_files_only=local_files_only,
                force_download=force_download,
                allow_patterns=_FILES,
                **user_agent,
            )
        )
    if not folder.is_dir() or not any(folder.iterdir()):
        looked = "; ".join(reader.LOOKS_FOR for reader in READERS)
        raise ModelNotFoundError(
            f"the repository {repository} has no model that ElmoKit reads: looked for {looked}"
        )
    _verify(folder, repository, _sums_in(folder))
    if not local_files_only:
        api = hub.HfApi(token=token, **user_agent)
        # the cache is named by the commit; without an answer there is nothing to compare with
        with suppress(*_failures(hub)):
            info = api.model_info(repository, revision=folder.name, files_metadata=True)
            large = {f.rfilename: f.lfs.sha256 for f in info.siblings or [] if f.lfs}
            here = {name: large[name] for name in large if (folder / name).is_file()}
            _verify(folder, repository, here)
    archives = [path for path in folder.iterdir() if path.name.endswith((".zip", ".tar.gz"))]
    in_folder = any(reader.matches(place) for place in sources(folder) for reader in READERS)
    return archives[0] if len(archives) == 1 and not in_folder else folder


def upload(
    checkpoint: Checkpoint,
    repository: str,
    *,
    dtype: str = "float32",
    private: bool | None = None,
    revision: str | None = None,
    token: str | bool | None = None,
    license: str | None = None,
    language: str | None = None,
    message: str | None = None,
) -> str:
    """Write a model into a repository, which is created if it does not exist.

    Args:
        checkpoint: The model.
        repository: Its name, "user/model".
        dtype: Precision of the stored weights, as for :func:`elmokit.formats.native.write`.
        private: Whether a new repository is private. Default: what the account says.
        revision: The branch, created if it does not exist. Default: the main branch.
        token: As for :func:`download`.
        license: The licence for the model card, such as "apache-2.0".
        language: The language for the model card, such as "en".
        message: The commit message.

    Returns:
        The address of the commit.
    """
    if not isinstance(repository, str) or not _NAME.fullmatch(repository):
        raise InputError(f"repository must be named user/model, not {shown(repository)}")
    hub = _huggingface_hub("Uploading a model")
    api = hub.HfApi(token=token, library_name="elmokit", library_version=__version__)
    with TemporaryDirectory() as place:
        folder = Path(place) / repository.split("/")[1]
        native.write(checkpoint, folder, dtype=dtype)
        (folder / "README.md").unlink()
        sums = "".join(f"{_sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir()))
        (folder / SUMS).write_text(sums, encoding="utf-8", newline="\n")
        with _clear_errors(hub, repository, revision, "upload to", OutputError):
            api.create_repo(repository, private=private, exist_ok=True)
            if revision is not None:
                api.create_branch(repository, branch=revision, exist_ok=True)
            card = _card(hub, api, repository, revision, checkpoint, license, language)
            (folder / "README.md").write_text(card, encoding="utf-8", newline="\n")
            done = api.upload_folder(
                repo_id=repository,
                folder_path=folder,
                revision=revision,
                commit_message=message or f"Model saved by ElmoKit {__version__}",
                delete_patterns=sorted(MODEL_FILES - {"README.md"}),  # of an earlier model
            )
    return str(done.commit_url)


def _card(
    hub: Any,
    api: Any,
    repository: str,
    revision: str | None,
    checkpoint: Checkpoint,
    license: str | None,
    language: str | None,
) -> str:
    """Return the model card with metadata for the Hub.

    A card in the repository keeps its text, but for the table of this model. It keeps language and
    licence if it described a model of the same size.
    """
    new = model_card(checkpoint, repository, load="from_pretrained")
    kept = False
    if api.file_exists(repository, "README.md", revision=revision):
        with TemporaryDirectory() as place:
            path = api.hf_hub_download(
                repository, "README.md", revision=revision, local_dir=place, force_download=True
            )
            text = Path(path).read_text(encoding="utf-8")
        (table,) = _TABLE.findall(new)
        kept = table.splitlines()[0] in text  # a model of another size is another model
        text = _TABLE.sub(lambda _: table, text)
    else:
        text = f"---\nlibrary_name: elmokit\n---\n\n{new}"
    card = hub.ModelCard(text)
    bundled = bundled_name(checkpoint.source)
    card.data.library_name = "elmokit"
    card.data.tags = [*(t for t in card.data.tags or [] if t != "elmo"), "elmo"]
    if not kept:
        card.data.language = card.data.license = None
    card.data.language = (
        language or card.data.language or _LANGUAGES.get(checkpoint.config.tokenizer)
    )
    card.data.license = license or card.data.license or _BUNDLED_LICENSES.get(bundled or "")
    return str(card)


def _huggingface_hub(purpose: str) -> Any:
    try:
        import huggingface_hub.errors
    except ImportError:
        raise MissingExtraError("huggingface_hub", "huggingface", purpose) from None
    return huggingface_hub


def _failures(hub: Any) -> tuple[type[BaseException], ...]:
    """Return what requests raise: the base of errors of its HTTP library, and OSError."""
    return (*hub.errors.HfHubHTTPError.__bases__, OSError)


@contextmanager
def _clear_errors(
    hub: Any, repository: str, revision: str | None, verb: str, kind: type[ElmoKitError]
) -> Iterator[None]:
    """Turn the errors of huggingface_hub into one sentence."""
    errors = hub.errors
    try:
        yield
    except ElmoKitError:
        raise
    except errors.GatedRepoError as error:
        raise kind(
            f"the repository {repository} asks for an agreement; accept it on its page on the "
            "Hugging Face Hub, then run hf auth login or pass token="
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise kind(
            f"there is no folder {repository}, and no repository of this name on the Hugging Face "
            "Hub that you can access; check the name, and for a private repository run "
            "hf auth login or pass token="
        ) from error
    except errors.RevisionNotFoundError as error:
        raise kind(
            f"the repository {repository} has no revision {shown(revision)}; give a branch, a tag "
            "or a commit"
        ) from error
    except errors.LocalEntryNotFoundError as error:
        raise kind(
            f"the model {repository} is not in the cache"
            f"{'' if revision is None else f' with revision {shown(revision)}'}, and the Hugging "
            "Face Hub cannot be reached or must not be; download it once with a connection, or "
            "give a folder"
        ) from error
    except Exception as error:  # of the HTTP library, of hf_xet, of the disk
        reason = shortened(str(error).strip().split("\n")[0] or type(error).__name__, 200)
        raise kind(
            f"cannot {verb} the repository {repository} ({reason}); check its name, your access "
            "and the connection"
        ) from error


def _sums_in(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of files by their names, from SHA256SUMS if there is one."""
    path = folder / SUMS
    if not path.is_file():
        return {}
    found = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        match = _SUM.fullmatch(line)
        if match is None:
            raise FormatError(
                f"{path} has the line {shown(line)}; expected a SHA-256, two blanks and a file name"
            )
        found[match[2]] = match[1]
    return found


def _verify(folder: Path, repository: str, expected: Mapping[str, str]) -> None:
    """Raise unless files have their SHA-256."""
    for name, checksum in expected.items():
        path = folder / name
        if not path.is_file():
            raise FormatError(
                f"the repository {repository} lists {name} in {SUMS} but does not have it; ask its "
                "owner to upload the model again"
            )
        if (found := _sha256(path)) != checksum:
            raise FormatError(
                f"{name} of the repository {repository} has the SHA-256 {found[:12]}… instead of "
                f"{checksum[:12]}…; pass force_download=True, and if that does not help, ask its "
                "owner to upload the model again"
            )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
