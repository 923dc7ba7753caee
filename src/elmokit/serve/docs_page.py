"""The documentation of the routes as a page: made from the OpenAPI schema, without any script."""

from __future__ import annotations

import json
from html import escape
from typing import Any

STYLE = """:root { color-scheme: light dark; }
body { font: 1rem/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2rem 0 0; font-size: 1.1rem; }
pre { overflow: auto; padding: .7rem; border: 1px solid #8886; border-radius: .3rem; }
"""
"""The style sheet of the page."""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="docs.css">
</head>
<body>
<h1>{title}</h1>
<p>{description} The same in machine-readable form: <a href="openapi.json">openapi.json</a>.</p>
{routes}
</body>
</html>
"""


def docs_html(schema: dict[str, Any]) -> str:
    """Return the page.

    Args:
        schema: An OpenAPI schema.
    """
    bodies = schema.get("components", {}).get("schemas", {})
    routes = [
        _route(method, path, route, bodies)
        for path, methods in schema["paths"].items()
        for method, route in methods.items()
    ]
    about = schema["info"]
    title = escape(f"{about['title']} {about['version']}")
    description = escape(about.get("description", ""))
    return _PAGE.format(title=title, description=description, routes="\n".join(routes))


def _route(method: str, path: str, route: dict[str, Any], bodies: dict[str, Any]) -> str:
    said = escape(route.get("description", ""))
    parts = [f"<h2><code>{method.upper()} {escape(path)}</code></h2>", f"<p>{said}</p>"]
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    if name in bodies:
        fields = bodies[name].get("properties", {})
        shown = json.dumps(fields, indent=1, ensure_ascii=False)
        parts.append(f"<details><summary>body</summary><pre>{escape(shown)}</pre></details>")
    statuses = ", ".join(map(str, route.get("responses", {})))
    parts.append(f"<p>Answers: {escape(statuses)}</p>")
    return "\n".join(parts)
