"""`einsum`: a sum of products in Einstein's notation, as products of matrices.

An index is a letter, or `("...", n)` for the n-th dimension from the right that an ellipsis covers.
"""

from __future__ import annotations

import functools
import itertools
import math

from .. import ops
from ..core.pytorch_tensors import type_name
from ..core.tracebacks import shows_users_frames
from ..tape import torch_function
from ..tape.tensor import Tensor

MOST_FOR_BEST_ORDER = 8  # up to so many operands, every order is tried


@shows_users_frames
def einsum(*args) -> Tensor:
    """Return the sum of products that an equation such as "bij,bjk->bik" describes.

    args: the equation and its operands, one after another or as a list; or an operand and its list
    of indices, a second operand and its indices, ..., and the indices of the result, where an index
    is an int from 0 to 51 or `...`. An index that the result lacks is summed over; one that is
    repeated in an operand takes its diagonal; `...` stands for dimensions that broadcast, as do
    dimensions of extent 1. Without "->" the result has the dimensions of `...` and then, in the
    order of the alphabet, the indices that occur once. Products of more than two operands are
    computed in the order that takes the fewest multiplications.

    Raises RuntimeError for an equation that is malformed or does not fit the operands.

    >>> x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> jaxgrad.einsum("ij,kj->ik", x, x)
    tensor([[ 5., 11.],
            [11., 25.]])
    >>> jaxgrad.einsum("ii", x)
    tensor(5.)
    """
    equation, operands = _equation_and_operands(args)
    if torch_function.is_overridden(operands):
        return torch_function.handle(einsum, operands, (equation, *operands), {})
    for position, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            kind = type_name(operand)
            raise TypeError(
                f"einsum(): expected Tensor as element {position} in argument 1, but got {kind}"
            )
    plan = _plan(equation, tuple(tuple(operand.shape) for operand in operands))
    terms = [
        _prepared(*triple, plan) for triple in zip(operands, plan.indices, plan.kept, strict=True)
    ]
    for first, second in plan.order:
        pair = terms[first], terms[second]
        del terms[second], terms[first]
        needed = set(plan.output).union(*(indices for _, indices in terms))
        terms.append(_product(pair, needed, plan.output))
    result, indices = terms[0]
    if indices == plan.output and (plan.order or plan.is_summed):
        return result
    return result.permute([indices.index(i) for i in plan.output])


einsum.overridable = True  # what overrides it gets the operands one by one, not as a list


class Plan:
    """The steps of an equation for operands of certain shapes.

    `indices`: those of each operand; `kept`: those that another operand or the output has;
    `output`: those of the result; `extents`: the extent of each index; `order`: the pairs of
    positions to contract, where the result goes to the end.
    """

    def __init__(self, equation, shapes):
        terms, output = _parsed(equation, len(shapes))
        self.indices = _spread(terms, shapes)
        self.extents = _extents(self.indices, shapes)
        self.output = _output(output, self.indices)
        counts = [set(indices) for indices in self.indices]
        self.kept = [
            [i for i in dict.fromkeys(indices) if i in self.output or _is_shared(i, n, counts)]
            for n, indices in enumerate(self.indices)
        ]
        self.is_summed = len(shapes) == 1 and set(self.indices[0]) != set(self.output)
        if self.is_summed:
            self.kept = [self.output]  # in its order, so that the sum is the result and no view
        self.order = _order([frozenset(kept) for kept in self.kept], self.output, self.extents)


@functools.lru_cache(maxsize=1024)
def _plan(equation, shapes):
    return Plan(equation, shapes)


def _is_shared(index, position, sets):
    return any(index in indices for n, indices in enumerate(sets) if n != position)


# the equation


def _equation_and_operands(args):
    """The equation and the operands of a call."""
    without_operands = len(args) == 2 and isinstance(args[1], list | tuple) and not args[1]
    if len(args) < 2 or (isinstance(args[0], str) and without_operands):
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    begins_with_operand = isinstance(args[0], Tensor) or torch_function.stands_for_tensor(args[0])
    if begins_with_operand and any(isinstance(arg, str) for arg in args):
        raise TypeError("einsum(): the equation is the first argument, before the operands")
    if begins_with_operand:
        terms = ["".join(map(_letter, _listed(indices))) for indices in args[1::2]]
        arrow = "->" + "".join(map(_letter, _listed(args[-1]))) if len(args) % 2 else ""
        return ",".join(terms) + arrow, args[: len(terms) * 2 : 2]
    if not isinstance(args[0], str):
        kind = type(args[0]).__name__
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {kind}")
    is_list = len(args) == 2 and isinstance(args[1], list | tuple)
    return args[0], tuple(args[1] if is_list else args[1:])


def _listed(indices):
    if isinstance(indices, Tensor):  # an operand without its indices
        raise ValueError(
            "einsum(): subscript in subscript list is not within the valid range [0, 52): an "
            "operand is followed by another instead of a list"
        )
    return indices


def _letter(number):
    if number is Ellipsis:
        return "..."
    if 0 <= number < 52:
        return chr(ord("A") + number) if number < 26 else chr(ord("a") + number - 26)
    raise ValueError(
        f"einsum(): subscript in subscript list is not within the valid range [0, 52): {number}"
    )


def _parsed(equation, count):
    """The indices of each operand, and of the output, or None where it is implicit.

    An ellipsis is one index, "...".
    """
    left, arrow, right = equation.partition("->")
    texts, terms, start = left.split(","), [], 0
    for position, text in enumerate(texts[:count]):
        terms.append(_tokens(text, start, f"operand {position}"))
        start += len(text) + 1
    if len(texts) != count:
        fewer = "fewer" if len(texts) > count else "more"
        raise RuntimeError(
            f"einsum(): {fewer} operands were provided than specified in the equation: "
            f"{equation!r} and {count} operands"
        )
    return terms, _tokens(right, len(left) + 2, "output") if arrow else None


def _tokens(text, start, where):
    """The indices in a part of the equation that begins at `start`."""
    tokens, position = [], 0
    while position < len(text):
        letter = text[position]
        if letter == ".":
            _check_ellipsis(text, position, tokens, where)
            tokens.append("...")
            position += 2
        elif letter.isascii() and letter.isalpha():
            tokens.append(letter)
        elif letter != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + position} in the equation "
                "string, subscripts must be in [a-zA-Z]"
            )
        position += 1
    return tokens


def _check_ellipsis(text, position, tokens, where):
    if "..." in tokens:
        which = "but an ellipsis (...)" if where == "output" else "for which an ellipsis"
        raise RuntimeError(f"einsum(): found '.' for {where} {which} was already found")
    if text[position : position + 3] != "...":
        dots = " (...)" if where == "output" else ""
        raise RuntimeError(
            f"einsum(): found '.' for {where} that is not part of any ellipsis{dots}"
        )


def _spread(terms, shapes):
    """The indices of each operand, one for each of its dimensions."""
    spread = []
    for position, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        letters, has_dots = [i for i in term if i != "..."], "..." in term
        covered = len(shape) - len(letters)
        if covered < 0 if has_dots else covered != 0:
            more = "is more than" if has_dots else "does not match"
            dots = "" if has_dots else " and no ellipsis was given"
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(letters)}) {more} the "
                f"number of dimensions ({len(shape)}) for operand {position}{dots}"
            )
        dims = [("...", n) for n in reversed(range(covered))]
        spread.append(
            tuple(itertools.chain.from_iterable(dims if i == "..." else [i] for i in term))
        )
    return spread


def _extents(terms, shapes):
    """The extent of each index; dimensions of extent 1 broadcast."""
    extents = {}
    for position, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        known = {}
        for index, extent in zip(term, shape, strict=True):
            if known.setdefault(index, extent) != extent:
                raise RuntimeError(
                    f"einsum(): subscript {index} is repeated for operand {position} but the sizes "
                    f"don't match, {extent} != {known[index]}"
                )
        for index, extent in known.items():
            seen = extents.setdefault(index, extent)
            if seen != extent and 1 not in (seen, extent):
                _refuse_extent(index, position, extent, seen, term)
            extents[index] = extent if seen == 1 else seen
    return extents


def _refuse_extent(index, position, extent, seen, term):
    if isinstance(index, str):
        raise RuntimeError(
            f"einsum(): subscript {index} has size {extent} for operand {position} which does not "
            f"broadcast with previously seen size {seen}"
        )
    dimension = [i for i in term if not isinstance(i, str)].index(index)
    raise RuntimeError(
        f"einsum(): dimension {dimension} covered by ellipsis in operand {position} has size "
        f"{extent} which does not broadcast with previously seen ellipsis with size {seen} for the "
        "respective dimension"
    )


def _output(tokens, terms):
    """The indices of the result."""
    all_indices = list(itertools.chain.from_iterable(terms))
    covered = max((i[1] + 1 for i in all_indices if not isinstance(i, str)), default=0)
    dots = [("...", n) for n in reversed(range(covered))]
    if tokens is None:
        letters = [i for i in all_indices if isinstance(i, str)]
        return (*dots, *(i for i in sorted(set(letters)) if letters.count(i) == 1))
    output = tuple(itertools.chain.from_iterable(dots if i == "..." else [i] for i in tokens))
    for index in output:
        if output.count(index) > 1:
            raise RuntimeError(
                f"einsum(): output subscript {index} appears more than once in the output"
            )
        if index not in all_indices:
            raise RuntimeError(
                f"einsum(): output subscript {index} does not appear in the equation for any input "
                "operand"
            )
    return output


# the order of contraction


def _order(terms, output, extents):
    """The pairs of positions to contract; each product goes to the end of the list."""
    if len(terms) <= 2:
        return [(0, 1)] if len(terms) == 2 else []
    if len(terms) <= MOST_FOR_BEST_ORDER:
        return _in_positions(_best_tree(terms, output, extents), len(terms))
    return _in_positions(_greedy_tree(terms, output, extents), len(terms))


def _cost(first, second, extents):
    """The multiplications of a product."""
    return math.prod(extents[index] for index in first | second)


def _left_over(members, terms, output):
    """The indices of a product of operands that others or the output have."""
    indices = frozenset().union(*(terms[n] for n in members))
    others = (term for n, term in enumerate(terms) if n not in members)
    return indices & frozenset(output).union(*others)


def _best_tree(terms, output, extents):
    """The tree of pairs with the fewest multiplications, among all."""
    everything = frozenset(range(len(terms)))
    best = {frozenset([n]): (0, n) for n in everything}
    for size in range(2, len(terms) + 1):
        for members in map(frozenset, itertools.combinations(sorted(everything), size)):
            best[members] = _best_split(members, terms, output, extents, best)
    return best[everything][1]


def _best_split(members, terms, output, extents, best):
    first, *rest = sorted(members)
    split = None
    for size in range(len(rest)):
        for chosen in itertools.combinations(rest, size):
            left = frozenset([first, *chosen])
            right = members - left
            indices = [_left_over(part, terms, output) for part in (left, right)]
            cost = best[left][0] + best[right][0] + _cost(*indices, extents)
            if split is None or cost < split[0]:
                split = cost, (best[left][1], best[right][1])
    return split


def _greedy_tree(terms, output, extents):
    """A tree of pairs: the cheapest product next, of those that shrink their operands the most."""
    left = {(frozenset([n]), n) for n in range(len(terms))}
    while len(left) > 1:

        def rank(pair):
            members = [part[0] for part in pair]
            indices = [_left_over(part, terms, output) for part in members]
            product = _left_over(members[0] | members[1], terms, output)
            sizes = [math.prod(map(extents.get, group)) for group in (product, *indices)]
            return sizes[0] - sizes[1] - sizes[2], _cost(*indices, extents), sorted(members[0])

        pairs = itertools.combinations(sorted(left, key=lambda part: min(part[0])), 2)
        first, second = min(pairs, key=rank)
        left -= {first, second}
        left.add((first[0] | second[0], (first[1], second[1])))
    return left.pop()[1]


def _in_positions(tree, count):
    """The pairs of a tree, as positions in a list from which both are taken at their turn."""
    present, pairs = list(range(count)), []

    def visit(node):
        if isinstance(node, int):
            return
        for part in node:
            visit(part)
        first, second = sorted(map(present.index, node))
        pairs.append((first, second))
        del present[second], present[first]
        present.append(node)

    visit(tree)
    return pairs


# the operations


def _prepared(tensor, indices, kept, plan):
    """An operand with its diagonals taken, summed over the indices that it alone has, and without
    dimensions of extent 1 that broadcast; and its indices.
    """
    indices = list(indices)
    for index in dict.fromkeys(indices):
        while indices.count(index) > 1:
            first = indices.index(index)
            second = indices.index(index, first + 1)
            tensor = tensor.diagonal(0, first, second).movedim(-1, first)
            del indices[second]
    wide = [n for n, i in enumerate(indices) if tensor.shape[n] == 1 != plan.extents[i]]
    if wide:
        tensor = tensor.squeeze(tuple(wide))
        indices = [i for n, i in enumerate(indices) if n not in wide]
    return (_summed_in_order if plan.is_summed else _summed)(tensor, indices, kept)


def _product(pair, needed, order):
    """The product of two tensors, each with its indices, summed over the indices that are not
    needed; and its indices, if possible in the given order.
    """
    shared = set(pair[0][1]) & set(pair[1][1])
    pair = [_summed(*factor, shared | needed) for factor in pair]
    if _is_exchanged(pair, needed, order):
        pair.reverse()
    (one, left), (other, right) = pair
    rows = [i for i in left if i not in shared]
    columns = [i for i in right if i not in shared]
    batch = [i for i in left if i in shared and i in needed]
    summed = [i for i in left if i in shared and i not in needed]
    extents = dict(zip((*left, *right), (*one.shape, *other.shape), strict=True))
    indices = (*batch, *rows, *columns)
    if not summed:
        one = _grouped(one, left, [batch, rows, [None] * len(columns)], extents)
        other = _grouped(other, right, [batch, [None] * len(rows), columns], extents)
        return one * other, indices
    one = _merged(one, left, batch, rows, summed, extents)
    other = _merged(other, right, batch, summed, columns, extents)
    product = ops.bmm(one, other) if batch else ops.mm(one, other)
    shape = tuple(extents[i] for i in indices)
    return product if tuple(product.shape) == shape else product.reshape(shape), indices


def _is_exchanged(pair, needed, order):
    """Whether the second factor should come first: if the result is then in order, and for a matrix
    and a vector if XLA then need not transpose the matrix.
    """
    (_, left), (_, right) = pair
    rows, columns = set(left) - set(right), set(right) - set(left)
    if rows and columns:
        return next((i in columns for i in order if i in rows or i in columns), False)
    if rows:
        return left[-1] in rows
    return bool(columns) and right[-1] not in columns and right[-1] not in needed


def _summed(tensor, indices, kept):
    """A tensor summed over the indices that are not kept, and the others."""
    dims = tuple(n for n, i in enumerate(indices) if i not in kept)
    return (tensor.sum(dims) if dims else tensor), tuple(i for i in indices if i in kept)


def _summed_in_order(tensor, indices, output):
    """A lone operand summed over the indices that the output lacks, in the order of the output."""
    order = (*output, *[i for i in indices if i not in output])
    tensor = _permuted(tensor, indices, order)
    return tensor.sum(tuple(range(len(output), len(order)))), output


def _grouped(tensor, indices, groups, extents):
    """The tensor with its dimensions in the order of these groups; one of extent 1 for None."""
    flat = list(itertools.chain.from_iterable(groups))
    tensor = _permuted(tensor, indices, [i for i in flat if i is not None])
    if None not in flat:
        return tensor
    return tensor.reshape([1 if i is None else extents[i] for i in flat])


def _merged(tensor, indices, batch, rows, columns, extents):
    """The tensor as a matrix, or as a batch of matrices if `batch` is not empty."""
    # a transposition of the matrix itself costs nothing: XLA makes it part of the product
    is_transposed = bool(columns) and bool(rows) and indices[-1] in rows
    groups = [batch, columns, rows] if is_transposed else [batch, rows, columns]
    tensor = _permuted(tensor, indices, list(itertools.chain.from_iterable(groups)))
    groups = groups if batch else groups[1:]
    if any(len(group) != 1 for group in groups):
        tensor = tensor.reshape([math.prod(extents[i] for i in group) for group in groups])
    return tensor.mT if is_transposed else tensor


def _permuted(tensor, indices, wanted):
    return tensor if list(indices) == wanted else tensor.permute([indices.index(i) for i in wanted])
