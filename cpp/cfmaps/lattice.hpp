#pragma once
// The lattice in C++: axes of cells, the tests trees ask of them, and boxes of cells.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cfmaps
{
using std::size_t;

/// A test asks whether a cell of one axis belongs to the set that goes left.
struct Test
{
    uint32_t axis;
    uint32_t rank;            // ordered axis: cells 0..rank go left; categorical axis: row of the table of sets
    uint32_t first_cell = 0;  // of the axis, in the flat arrays
    bool ordered = true;
};

/// Axes, their cells with closed ends, and every distinct test, sorted by axis and rank.
struct Lattice
{
    std::vector<uint32_t> n_cells;
    std::vector<uint8_t> categorical;
    std::vector<size_t> cell_start;  // first cell of each axis in the flat arrays
    std::vector<double> low, high;
    std::vector<std::vector<uint32_t>> columns;  // columns of the model behind each axis
    std::vector<Test> tests;
    std::vector<uint32_t> first_test;         // per axis, and one past the end
    std::vector<std::vector<uint64_t>> sets;  // categorical tests: cells going left, 64 to a word

    // Words of a box: an ordered axis takes one (low | high << 32), a categorical one a bit per cell.
    std::vector<uint32_t> word_start;  // per axis, and one past the end

    size_t n_axes() const { return n_cells.size(); }
    size_t n_words() const { return word_start.back(); }
    bool has_sets() const { return !sets.empty(); }
    bool is_ordered(size_t axis) const { return !categorical[axis]; }
    /// Whether cells, in any sets, are ranges of one column: codes of categories, or numbers and then NaN.
    bool is_coded(size_t axis) const { return categorical[axis] && columns[axis].size() == 1; }

    size_t n_columns() const;
    /// Moves a row into cells, one per axis; a value that its cell allows stays.
    void move(std::span<const uint32_t> cells, double* row) const;

    /// Fills what follows from the rest: where each axis' tests and words begin.
    void finish();

private:
    double coded_value(double value, size_t at) const;
};

/// A box of cells, in the words of its lattice. Plain memory, so that a search can keep thousands.
using BoxSpan = std::span<uint64_t>;
using ConstBox = std::span<const uint64_t>;

inline uint32_t low_end(uint64_t word)
{
    return static_cast<uint32_t>(word);
}
inline uint32_t high_end(uint64_t word)
{
    return static_cast<uint32_t>(word >> 32);
}
inline uint64_t interval(uint32_t low, uint32_t high)
{
    return low | (static_cast<uint64_t>(high) << 32);
}

/// Every cell of every axis.
std::vector<uint64_t> whole_box(const Lattice& lattice);

/// Whether the box holds this cell of the axis.
bool holds(const Lattice& lattice, ConstBox box, size_t axis, uint32_t cell);

/// On which sides of a test the box has cells.
struct Sides
{
    bool left, right;
    bool both() const { return left && right; }
};
Sides sides_of(const Lattice& lattice, ConstBox box, uint32_t test);

/// Throws `CorruptMap` unless the test parts the box: in a map that grew here it always does.
void expect_both_sides(const Lattice& lattice, ConstBox box, uint32_t test);

/// Keeps the cells on one side of the test.
void keep_side(const Lattice& lattice, BoxSpan box, uint32_t test, bool right);

/// Calls `visit(cell)` for each cell the box allows on the axis.
template <class Visit>
void each_cell(const Lattice& lattice, ConstBox box, size_t axis, Visit visit)
{
    const size_t first = lattice.word_start[axis];
    if (lattice.is_ordered(axis))
    {
        for (uint32_t cell = low_end(box[first]); cell <= high_end(box[first]); ++cell)
            visit(cell);
        return;
    }
    for (size_t word = first; word < lattice.word_start[axis + 1]; ++word)
        for (uint64_t rest = box[word]; rest; rest &= rest - 1)
            visit(static_cast<uint32_t>((word - first) * 64 + std::countr_zero(rest)));
}
}  // namespace cfmaps
