#!/usr/bin/env python3
"""Fail where files call each other in a circle: check_circles.py ROOT [--lower] [--list]

A file here is a source with the header of its name. It calls another when it names a function
that the other defines; one that is handed over by its address counts as called. Folders
(wings) must not call each other in a circle at all, nor call what src/layers keeps from them.
"""
import pathlib
import re
import sys

import rulers

FILES_MAX = 3
NAME = re.compile(r"\b[A-Za-z_]\w*\b")
CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")


def read(root, top):
    """{file: names it uses}, {function: file that defines it for others}."""
    uses, home = {}, {}
    for path in rulers.c_files(root / top):
        code = rulers.code_of(path.read_text())
        node = path.relative_to(root).with_suffix("")
        own = set()
        for function in rulers.functions(code):
            if not function.is_static or path.suffix == ".h":
                home[function.name] = node
            else:
                own.add(function.name)
        found = {n for n in NAME.findall(code) if n.startswith(("dry_", "dryi_"))}
        found |= set(CALL.findall(code))
        # a declaration in a header is no call
        if path.suffix == ".h":
            found = {n for f in rulers.functions(code) for n in CALL.findall("\n".join(f.body))}
        uses.setdefault(node, set()).update(found - own)
    return uses, home


def circles(graph):
    """Strongly connected parts of more than one node, by Tarjan, without recursion."""
    index, low, stack, on, parts = {}, {}, [], set(), []
    for start in sorted(graph):
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on.add(start)
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on.add(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in on:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = stack[stack.index(node):]
                    del stack[len(stack) - len(part):]
                    on -= set(part)
                    if len(part) > 1:
                        parts.append(sorted(part))
    return parts


def arrows(uses, home):
    graph = {node: set() for node in uses}
    for node, names in uses.items():
        graph[node] = {home[n] for n in names if n in home and home[n] != node}
    return graph


def forbidden_calls(graph, allowed):
    """Calls beyond what src/layers allows; a declaration of one's own hides them from includes."""
    for node, targets in sorted(graph.items()):
        module = str(node.parent.relative_to("src"))
        for target in sorted(targets):
            below = str(target.parent.relative_to("src"))
            if below != module and below not in allowed.get(module, set()):
                yield f"{node} calls {target}, which src/layers keeps from it"


def common_folder(part):
    return str(min((node.parent for node in part), key=lambda p: len(p.parts)))


def main():
    root = pathlib.Path(sys.argv[1])
    ceilings, folders = rulers.Ceilings("circle"), rulers.Ceilings("wings")
    largest = {}
    bad = 0
    for top in ("src", "tool"):
        graph = arrows(*read(root, top))
        if top == "src":
            for text in forbidden_calls(graph, rulers.layers(root)):
                bad += 1
                print(text)
        for part in circles(graph):
            folder = common_folder(part)
            if "--list" in sys.argv:
                print(f"{folder}: {len(part)}: {' '.join(node.name for node in part)}")
            largest[folder] = max(largest.get(folder, 0), len(part))
        wings = {}
        for node, targets in graph.items():
            wings.setdefault(node.parent, set()).update(
                t.parent for t in targets if t.parent != node.parent)
        parts = circles(wings)
        for part in parts if "--list" in sys.argv else []:
            print(f"folders that call each other: {' '.join(map(str, part))}")
            for node, targets in sorted(graph.items()):
                for target in sorted(targets):
                    if {node.parent, target.parent} <= set(part) and node.parent != target.parent:
                        print(f"    {node} calls {target}")
        folders.hold(top, sum(map(len, parts)), 0, ": folders that call each other")
    for folder in sorted(set(largest) | set(ceilings.known)):
        ceilings.hold(folder, largest.get(folder, 1), FILES_MAX,
                      ": files that call each other (--list names them)")
    return ceilings.done() | folders.done() | (bad != 0)


sys.exit(main())
