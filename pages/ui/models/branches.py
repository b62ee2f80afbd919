"""The texts that were written after one prompt, as branches of a tree, and what the model computed for each token.

Places count the tokens of the decoder's text from 0, prompt included. Dimensions: vocab, head, key.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from transformer import Sampling

MOST_BRANCHES = 32
"""With one more, the oldest goes that no other has parted from."""
LOGITS, TOP = "logits", "top"
Computed = dict[Hashable, np.ndarray]
"""What the model computed before a token was chosen, which is the same for all that could have stood there: under
`LOGITS` (vocab,), of a large vocabulary under `TOP` what `top_of` gives, and under (kind, layer) where the token before
looked, (head, key)."""


@dataclass(frozen=True, eq=False)
class Written:
    """One token after the prompt; probability, rank (1: likeliest) and entropy (nats) are the model's own."""

    id: int
    probability: float
    rank: int
    entropy: float
    picked: bool = False
    """Chosen by the visitor instead of drawn."""
    point: float | None = None
    """The random number, 0 to 1, that fell on it, or on the one it was picked instead of; None if that isn't known."""
    sampling: Sampling | None = None
    """How it was drawn; None if that isn't known, as of a text that came with a link."""
    computed: Computed = field(default_factory=dict, repr=False)


class Memory:
    """Arrays that `Computed` holds, up to so many bytes: the oldest are taken away, and computed again if need be."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._kept: deque[tuple[Computed, Hashable]] = deque()

    def put(self, computed: Computed, key: Hashable, array: np.ndarray) -> None:
        """Keep an array, unless there is one under its key."""
        if key in computed:
            return
        computed[key] = array
        self._kept.append((computed, key))
        self.size += array.nbytes
        while self.size > self.limit:
            old, name = self._kept.popleft()
            self.size -= old.pop(name).nbytes


@dataclass(eq=False)
class Branch:
    """One text: what was seen of it, and what is computed ahead."""

    id: int
    begin: int
    """The place of its first token: how many the prompt has."""
    parent: Branch | None = None
    tokens: list[Written] = field(default_factory=list)
    seen: int = 0
    """How many of its tokens were seen; those after them are ahead."""
    _parts: int = 0

    @property
    def written(self) -> list[Written]:
        """What was seen."""
        return self.tokens[: self.seen]

    @property
    def ahead(self) -> list[Written]:
        """What is computed and wasn't seen yet."""
        return self.tokens[self.seen :]

    @property
    def length(self) -> int:
        """The place after the last token that was seen."""
        return self.begin + self.seen

    @property
    def end(self) -> int:
        """The place after the last token that is computed."""
        return self.begin + len(self.tokens)

    @property
    def at(self) -> int | None:
        """The place where it parts from its parent: the first that differs, or that one of the two doesn't have."""
        if self.parent is None:
            return None
        self._parts = common(self.written, self.parent.written, self._parts)
        return self.begin + self._parts


class Tree:
    """The branches after one prompt, and which of them is current."""

    def __init__(self, begin: int) -> None:
        """begin: how many tokens the prompt has."""
        self.begin = begin
        self.carried = 0
        """How many tokens of the first text were written before the model was changed, and are kept with that."""
        self._ids = itertools.count(1)
        self.current = Branch(next(self._ids), begin)
        self.branches = [self.current]

    def find(self, branch_id: object) -> Branch | None:
        """The branch with this number, if there is one."""
        return next((branch for branch in self.branches if branch.id == branch_id), None)

    def grow(self, tokens: Iterable[Written], ahead: Iterable[Written] = ()) -> None:
        """Begin a branch of the current one, with these tokens, and go over to it."""
        seen = list(tokens)
        self.current = Branch(next(self._ids), self.begin, self.current, [*seen, *ahead], len(seen))
        self.branches.append(self.current)
        if len(self.branches) > MOST_BRANCHES:
            self._forget(next(filter(self._can_go, self.branches), self.branches[0]))

    def take_back(self) -> None:
        """Go back to the branch that the current one was begun from, and forget it if nothing was written in it."""
        left, parent = self.current, self.current.parent
        if parent is None:
            return
        self.current = parent
        is_picked_only = bool(left.seen) and left.at == left.length - 1 and left.written[-1].picked
        if (not left.seen or is_picked_only) and self._can_go(left):
            self._forget(left)

    def _can_go(self, branch: Branch) -> bool:
        return branch is not self.current and all(other.parent is not branch for other in self.branches)

    def _forget(self, branch: Branch) -> None:
        self.branches.remove(branch)
        for other in self.branches:
            if other.parent is branch:
                other.parent = None


class Shelf:
    """The trees of the prompts that a visitor had before, the newest few."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._trees: OrderedDict[Hashable, Tree] = OrderedDict()

    def put(self, key: Hashable, tree: Tree) -> None:
        """Keep a tree that has something in it."""
        if len(tree.branches) > 1 or tree.current.seen != tree.carried:
            self._trees[key] = tree
            while len(self._trees) > self.most:
                self._trees.popitem(last=False)

    def take(self, key: Hashable) -> Tree | None:
        """The tree of a prompt, which leaves the shelf."""
        return self._trees.pop(key, None)


def common(one: Sequence[Written], other: Sequence[Written], least: int = 0) -> int:
    """How many tokens two texts have in common at their beginning; at least so many are known to be."""
    most = min(len(one), len(other))
    while least < most and one[least].id == other[least].id:
        least += 1
    return least
