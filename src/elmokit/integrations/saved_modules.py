"""Opens the modules of a saved SentenceTransformer without ``trust_remote_code``.

sentence-transformers imports the classes that a folder names only with ``trust_remote_code=True``,
which would allow a folder to run any code. Here, ElmoKit's class is known, and its own check
refuses every other class that is not of sentence-transformers.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

from torch import nn

from elmokit.errors import FormatError, InputError, shortened, shown

_ARGUMENTS = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")


def open_modules(
    folder: Path, own_class: type[Any], settings: dict[str, Any]
) -> tuple[OrderedDict[str, Any], dict[str, Any]]:
    """Load the modules of a saved SentenceTransformer.

    Args:
        folder: What ``save_pretrained`` wrote.
        own_class: ElmoKit's module, which is trusted.
        settings: Settings of that module, instead of the saved ones.

    Returns:
        The modules by name, and the other arguments of the SentenceTransformer.
    """
    from sentence_transformers.util import import_module_class

    own = f"{own_class.__module__}.{own_class.__qualname__}"
    try:
        entries = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        found = (folder / "config_sentence_transformers.json").read_text(encoding="utf-8")
        arguments = {k: v for k, v in dict(json.loads(found)).items() if k in _ARGUMENTS}
        places = [(str(e["name"]), str(e["type"]), str(e["path"])) for e in entries]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"{folder} is not a complete SentenceTransformer ({shortened(str(error))}); copy it "
            "again"
        ) from error
    if own not in [kind for _, kind, _ in places]:
        raise InputError(f"{folder} has no {own_class.__name__}; open it with SentenceTransformer")
    modules: OrderedDict[str, Any] = OrderedDict()
    for name, kind, path in places:
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise FormatError(f"{folder}/modules.json leads out of its folder: {shown(path)}")
        if kind == own:
            modules[name] = own_class.load(str(folder), subfolder=path, model_kwargs=settings)
            continue
        try:
            module_class: Any = import_module_class(kind, str(folder), trust_remote_code=False)
        except ValueError as error:
            raise InputError(
                f"{folder} contains {shown(kind)}, which is neither ElmoKit's nor of "
                "sentence-transformers; if you trust it, open the folder with SentenceTransformer "
                "and trust_remote_code=True"
            ) from error
        is_module = isinstance(module_class, type) and issubclass(module_class, nn.Module)
        if not is_module:
            raise FormatError(f"{folder}/modules.json names {shown(kind)}, which is no module")
        modules[name] = module_class.load(str(folder), subfolder=path)
    return modules, arguments
