"""Which method is the fastest, from measured speeds of two cores; docs/performance.md has the table."""

from dataclasses import dataclass

# Seconds. Dijkstra is SciPy's, on one core, from each source: a node costs its turn in the heap, an edge
# its look.
DIJKSTRA_NODE = 2e-7
DIJKSTRA_EDGE = 2.5e-9
# A step of a min_plus product on one core, and on a GPU; reading an element of a matrix of which few rows
# are multiplied.
STEP_CPU = 2.4e-11
STEP_CUDA = 8e-14
ELEMENT_CPU = 6e-10
ELEMENT_CUDA = 2e-12
# Products until nothing changes: what a graph without long detours takes. They stop where they cost half a
# closure.
USUAL_PRODUCTS = 10


@dataclass
class Problem:
    nodes: int
    edges: int
    sources: int
    threads: int
    wide: bool  # 8 bytes an element
    on_cuda: bool
    reached: "float | None" = None  # nodes that a source can reach, where somebody knows

    def _step(self) -> float:
        return (STEP_CUDA if self.on_cuda else STEP_CPU / self.threads) * (2 if self.wide else 1)

    def closure(self) -> float:
        return self.nodes**3 * self._step()

    def product(self) -> float:
        """One product of the rows of the sources with the matrix."""
        element = (ELEMENT_CUDA if self.on_cuda else ELEMENT_CPU) * (2 if self.wide else 1)
        return self.nodes**2 * max(element, self.sources * self._step())

    def dijkstra(self) -> float:
        reached = self.nodes if self.reached is None else self.reached
        share = reached / max(self.nodes, 1)
        return self.sources * (reached * DIJKSTRA_NODE + share * self.edges * DIJKSTRA_EDGE)

    def product_limit(self) -> int:
        return max(1, int(self.closure() / (2 * self.product())))

    def fastest(self, *, dijkstra_allowed: bool) -> str:
        """Of D, BF and FW."""
        times = {"FW": self.closure()}
        if self.sources < self.nodes:
            times["BF"] = USUAL_PRODUCTS * self.product()
        if dijkstra_allowed:
            times["D"] = self.dijkstra()
        return min(times, key=times.__getitem__)
