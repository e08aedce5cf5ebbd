// Reading the map as boxes.

#include "map.hpp"

#include <cmath>
#include <limits>

namespace cfmaps
{
namespace
{
/// The range of the numbers that a box allows a column; NaN when it must be missing.
void coded_bounds(const Lattice& lattice, ConstBox box, size_t axis, double& lower, double& upper)
{
    lower = upper = std::numeric_limits<double>::quiet_NaN();
    each_cell(lattice, box, axis,
              [&](uint32_t cell)
              {
                  const size_t at = lattice.cell_start[axis] + cell;
                  lower = std::fmin(lower, lattice.low[at]);
                  upper = std::fmax(upper, lattice.high[at]);
              });
}
}  // namespace

std::vector<uint64_t> Map::region(std::span<const uint32_t> cells) const
{
    std::vector<uint64_t> box = whole_box(forest_.lattice);
    Narrower narrower(forest_);
    State state;
    narrower.start(state, box);
    while (narrower.winner(state) == undecided)
    {
        int32_t test = narrower.best_cut(state);
        if (test < 0)
        {
            const Verdict verdict = judge(forest_.trees, forest_.lattice, box);
            if (verdict.cut < 0)
                break;
            test = verdict.cut;
        }
        const auto& [axis, rank, first_cell, ordered] = forest_.lattice.tests[test];
        const uint32_t cell = cells[axis];
        const bool right = forest_.lattice.is_ordered(axis)
                               ? cell > rank
                               : !(forest_.lattice.sets[rank][cell / 64] >> (cell % 64) & 1);
        keep_side(forest_.lattice, box, test, right);
        narrower.add_side(box, test, right);
        narrower.apply(state, state, box);
    }
    return box;
}

void Map::bounds_of(ConstBox box, double* lower, double* upper) const
{
    const Lattice& lattice = forest_.lattice;
    for (size_t axis = 0; axis < lattice.n_axes(); ++axis)
    {
        const auto& columns = lattice.columns[axis];
        if (lattice.is_ordered(axis))
        {
            const uint64_t word = box[lattice.word_start[axis]];
            lower[columns[0]] = lattice.low[lattice.cell_start[axis] + low_end(word)];
            upper[columns[0]] = lattice.high[lattice.cell_start[axis] + high_end(word)];
            continue;
        }
        if (lattice.is_coded(axis))
        {
            coded_bounds(lattice, box, axis, lower[columns[0]], upper[columns[0]]);
            continue;
        }
        size_t n_open = 0;
        each_cell(lattice, box, axis, [&](uint32_t) { ++n_open; });
        for (uint32_t category = 0; category < columns.size(); ++category)
        {
            const bool open = holds(lattice, box, axis, category);
            upper[columns[category]] = open;
            lower[columns[category]] = open && n_open == 1;
        }
    }
}

/// Writes the codes of a box's ends, column by column: an ordered axis counts cells, a category is 0 or 1.
void Map::codes_of(ConstBox box, uint16_t* codes) const
{
    const Lattice& lattice = forest_.lattice;
    for (size_t axis = 0; axis < lattice.n_axes(); ++axis)
    {
        const auto& columns = lattice.columns[axis];
        if (lattice.is_ordered(axis))
        {
            const uint64_t word = box[lattice.word_start[axis]];
            codes[2 * columns[0]] = static_cast<uint16_t>(low_end(word));
            codes[2 * columns[0] + 1] = static_cast<uint16_t>(high_end(word));
            continue;
        }
        for (uint32_t category = 0; category < columns.size(); ++category)
            codes[2 * columns[category]] = codes[2 * columns[category] + 1] = holds(lattice, box, axis, category);
    }
}

/// Shows a box to the sink; with single categories, one for every choice of a category on each axis that has several.
void Map::emit(std::vector<uint64_t>& box, size_t axis, int32_t label, bool single, const Sink& sink) const
{
    const Lattice& lattice = forest_.lattice;
    while (axis < lattice.n_axes() && (!single || lattice.is_ordered(axis)))
        ++axis;
    if (axis == lattice.n_axes())
        return sink(box, label);
    const std::vector<uint64_t> before(box);
    each_cell(lattice, before, axis,
              [&](uint32_t cell)
              {
                  const size_t first = lattice.word_start[axis];
                  std::fill(box.begin() + first, box.begin() + lattice.word_start[axis + 1], 0);
                  box[first + cell / 64] = uint64_t{1} << (cell % 64);
                  emit(box, axis + 1, label, single, sink);
              });
    box = before;
}

void Map::collect(uint32_t id, std::vector<uint64_t>& box, int32_t label, bool single, const Sink& sink) const
{
    const Node node = nodes_.read(id);
    if (!node.is_inner())
    {
        const int32_t own = node.is_leaf() ? static_cast<int32_t>(node.label()) : undecided;
        return label == undecided || label == own ? emit(box, 0, own, single, sink) : void();
    }
    if (label != undecided && !(node.classes() & Node::class_bit(static_cast<uint32_t>(label))))
        return;
    expect_both_sides(forest_.lattice, box, node.test());
    for (const bool right : {false, true})
    {
        const uint32_t axis = forest_.lattice.tests[node.test()].axis;
        const auto first = box.begin() + forest_.lattice.word_start[axis];
        const std::vector<uint64_t> before(first, box.begin() + forest_.lattice.word_start[axis + 1]);
        keep_side(forest_.lattice, box, node.test(), right);
        collect(node.child() + right, box, label, single, sink);
        std::copy(before.begin(), before.end(), first);
    }
}

Boxes Map::boxes(int32_t label, bool single_categories) const
{
    Boxes boxes;
    std::vector<uint64_t> whole = whole_box(forest_.lattice);
    collect(0, whole, label, single_categories,
            [&](ConstBox box, int32_t own)
            {
                boxes.label.push_back(own);
                boxes.lower.resize(boxes.label.size() * n_columns_);
                boxes.upper.resize(boxes.label.size() * n_columns_);
                const size_t first = (boxes.label.size() - 1) * n_columns_;
                bounds_of(box, &boxes.lower[first], &boxes.upper[first]);
            });
    return boxes;
}

/// The boxes of a class with single categories, as codes, in the order of `boxes`.
CodedBoxes Map::coded_boxes(int32_t label) const
{
    const Lattice& lattice = forest_.lattice;
    std::vector<size_t> axis_of(n_columns_);
    for (size_t axis = 0; axis < lattice.n_axes(); ++axis)
        for (const uint32_t column : lattice.columns[axis])
            axis_of[column] = axis;
    CodedBoxes boxes(n_columns_);
    static constexpr double flags[] = {0.0, 1.0};
    for (const size_t axis : axis_of)
    {
        const size_t first = lattice.cell_start[axis], n_cells = lattice.n_cells[axis];
        const bool is_ordered = lattice.is_ordered(axis);
        boxes.add_table(is_ordered ? std::span(&lattice.low[first], n_cells) : std::span(flags));
        boxes.add_table(is_ordered ? std::span(&lattice.high[first], n_cells) : std::span(flags));
    }
    std::vector<uint64_t> whole = whole_box(lattice);
    collect(0, whole, label, true,
            [&](ConstBox box, int32_t)
            {
                boxes.codes.resize(boxes.codes.size() + 2 * n_columns_);
                codes_of(box, &boxes.codes[boxes.codes.size() - 2 * n_columns_]);
            });
    return boxes;
}

BoxTree Map::box_tree(int32_t label, size_t leaf_size, const Poll& poll) const
{
    if (2 * (forest_.lattice.low.size() + n_columns_) <= CodedBoxes::most_ends)
        return {coded_boxes(label), leaf_size, poll};
    const Boxes plain = boxes(label, true);
    return {n_columns_, plain.lower, plain.upper, leaf_size, poll};
}
}  // namespace cfmaps
