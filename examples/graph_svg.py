"""Draws the autograd graph of a tensor as SVG: a box for each node, rows by distance from the
result.
"""

from html import escape

WIDTH, HEIGHT, GAP_X, GAP_Y = 190, 34, 14, 34


def rows_of(tensor):
    """The nodes in rows: each one row below the lowest of the nodes that send gradients to it; and
    all edges.
    """
    depth, edges, stack = {tensor.grad_fn: 0}, [], [tensor.grad_fn]
    while stack:
        node = stack.pop()
        for target, _ in node.next_functions:
            if target is None:
                continue
            edges.append((node, target))
            if depth.get(target, -1) <= depth[node]:
                depth[target] = depth[node] + 1
                stack.append(target)
    rows = [[] for _ in range(max(depth.values()) + 1)]
    for node in sorted(depth, key=lambda node: node.sequence, reverse=True):
        rows[depth[node]].append(node)
    return rows, list(dict.fromkeys(edges))


def label(node, names):
    """What the box says: a leaf's name and shape, or the node's name."""
    if node.name() != "AccumulateGrad":
        return node.name()
    leaf = node.variable
    return f"{names.get(id(leaf), 'leaf')} {list(leaf.shape)}"


def draw(tensor, names):
    """The SVG text of the graph of `tensor`; `names` gives leaves names, by `id`."""
    rows, edges = rows_of(tensor)
    width = max(len(row) for row in rows) * (WIDTH + GAP_X) + GAP_X
    height = len(rows) * (HEIGHT + GAP_Y) + GAP_Y
    places = {}
    for level, row in enumerate(rows):
        left = (width - len(row) * (WIDTH + GAP_X) + GAP_X) / 2
        for position, node in enumerate(row):
            places[node] = left + position * (WIDTH + GAP_X), GAP_Y + level * (HEIGHT + GAP_Y)
    lines = [_arrow(*places[source], *places[target]) for source, target in edges]
    boxes = [
        _box(*place, label(node, names), node.name() == "AccumulateGrad")
        for node, place in places.items()
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}"',
            '     font-family="sans-serif" font-size="12" text-anchor="middle">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto">',
            '<path d="M0 0 8 4 0 8z" fill="#666"/></marker></defs>',
            '<rect width="100%" height="100%" fill="white"/>',
            *lines,
            *boxes,
            "</svg>\n",
        ]
    )


def _arrow(x1, y1, x2, y2):
    start, end = f"{x1 + WIDTH / 2:.0f} {y1 + HEIGHT:.0f}", f"{x2 + WIDTH / 2:.0f} {y2:.0f}"
    middle = (y1 + HEIGHT + y2) / 2
    curve = f"M{start} C{x1 + WIDTH / 2:.0f} {middle:.0f} {x2 + WIDTH / 2:.0f} {middle:.0f} {end}"
    return f'<path d="{curve}" fill="none" stroke="#666" marker-end="url(#tip)"/>'


def _box(x, y, text, leaf):
    fill = "#d7ecd9" if leaf else "#e3e9f5"
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{fill}" '
        f'stroke="#556"/>'
        f'<text x="{x + WIDTH / 2:.0f}" y="{y + HEIGHT / 2 + 4:.0f}">{escape(text)}</text>'
    )
