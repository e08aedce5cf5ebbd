#include "lattice.hpp"

#include "stored.hpp"

#include <algorithm>
#include <cmath>

namespace cfmaps
{
void Lattice::finish()
{
    first_test.assign(n_axes() + 1, 0);
    for (const Test& test : tests)
        ++first_test[test.axis + 1];
    for (const Test& test : tests)
        if (!is_ordered(test.axis))
            sets[test.rank].resize((n_cells[test.axis] + 63) / 64);
    word_start.assign(n_axes() + 1, 0);
    cell_start.assign(n_axes(), 0);
    for (size_t axis = 0; axis < n_axes(); ++axis)
    {
        first_test[axis + 1] += first_test[axis];
        if (axis > 0)
            cell_start[axis] = cell_start[axis - 1] + n_cells[axis - 1];
        word_start[axis + 1] = word_start[axis] + (is_ordered(axis) ? 1 : (n_cells[axis] + 63) / 64);
    }
    for (Test& test : tests)
    {
        test.first_cell = static_cast<uint32_t>(cell_start[test.axis]);
        test.ordered = is_ordered(test.axis);
    }
}

size_t Lattice::n_columns() const
{
    size_t n = 0;
    for (const auto& axis : columns)
        n += axis.size();
    return n;
}

void Lattice::move(std::span<const uint32_t> cells, double* row) const
{
    for (size_t axis = 0; axis < cells.size(); ++axis)
    {
        const size_t at = cell_start[axis] + cells[axis];
        if (is_ordered(axis))
            row[columns[axis][0]] = std::clamp(row[columns[axis][0]], low[at], high[at]);
        else if (is_coded(axis))
            row[columns[axis][0]] = coded_value(row[columns[axis][0]], at);
        else
            for (uint32_t category = 0; category < columns[axis].size(); ++category)
                row[columns[axis][category]] = category == cells[axis];
    }
}

/// A value that is filled becomes the number nearest to 0.
double Lattice::coded_value(double value, size_t at) const
{
    if (std::isnan(low[at]))
        return low[at];
    return std::clamp(std::isnan(value) ? 0.0 : value, low[at], high[at]);
}

std::vector<uint64_t> whole_box(const Lattice& lattice)
{
    std::vector<uint64_t> box(lattice.n_words(), 0);
    for (size_t axis = 0; axis < lattice.n_axes(); ++axis)
    {
        const size_t first = lattice.word_start[axis];
        if (lattice.is_ordered(axis))
            box[first] = interval(0, lattice.n_cells[axis] - 1);
        else
            for (uint32_t cell = 0; cell < lattice.n_cells[axis]; ++cell)
                box[first + cell / 64] |= uint64_t{1} << (cell % 64);
    }
    return box;
}

bool holds(const Lattice& lattice, ConstBox box, size_t axis, uint32_t cell)
{
    const size_t first = lattice.word_start[axis];
    if (lattice.is_ordered(axis))
        return low_end(box[first]) <= cell && cell <= high_end(box[first]);
    return box[first + cell / 64] >> (cell % 64) & 1;
}

Sides sides_of(const Lattice& lattice, ConstBox box, uint32_t test)
{
    const auto& [axis, rank, first_cell, ordered] = lattice.tests[test];
    const size_t first = lattice.word_start[axis];
    if (ordered)
        return {low_end(box[first]) <= rank, high_end(box[first]) > rank};
    Sides sides{false, false};
    const auto& set = lattice.sets[rank];
    for (size_t word = 0; word < set.size(); ++word)
    {
        sides.left |= (box[first + word] & set[word]) != 0;
        sides.right |= (box[first + word] & ~set[word]) != 0;
    }
    return sides;
}

void expect_both_sides(const Lattice& lattice, ConstBox box, uint32_t test)
{
    if (!sides_of(lattice, box, test).both())
        throw CorruptMap("a node of the map parts nothing");
}

void keep_side(const Lattice& lattice, BoxSpan box, uint32_t test, bool right)
{
    const auto& [axis, rank, first_cell, ordered] = lattice.tests[test];
    const size_t first = lattice.word_start[axis];
    if (ordered)
    {
        const uint64_t word = box[first];
        box[first] = right ? interval(std::max(low_end(word), rank + 1), high_end(word))
                           : interval(low_end(word), std::min(high_end(word), rank));
        return;
    }
    const auto& set = lattice.sets[rank];
    for (size_t word = 0; word < set.size(); ++word)
        box[first + word] &= right ? ~set[word] : set[word];
}
}  // namespace cfmaps
