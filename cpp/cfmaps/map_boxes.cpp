// Reading the map as boxes.

#include "map.hpp"

namespace cfmaps
{
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

/// Adds a box; with single categories, one for every choice of a category on each axis that has several.
void Map::emit(std::vector<uint64_t>& box, size_t axis, int32_t label, bool single, Boxes& boxes) const
{
    const Lattice& lattice = forest_.lattice;
    while (axis < lattice.n_axes() && (!single || lattice.is_ordered(axis)))
        ++axis;
    if (axis == lattice.n_axes())
    {
        boxes.label.push_back(label);
        boxes.lower.resize(boxes.label.size() * n_columns_);
        boxes.upper.resize(boxes.label.size() * n_columns_);
        const size_t first = (boxes.label.size() - 1) * n_columns_;
        return bounds_of(box, &boxes.lower[first], &boxes.upper[first]);
    }
    const std::vector<uint64_t> before(box);
    each_cell(lattice, before, axis,
              [&](uint32_t cell)
              {
                  const size_t first = lattice.word_start[axis];
                  std::fill(box.begin() + first, box.begin() + lattice.word_start[axis + 1], 0);
                  box[first + cell / 64] = uint64_t{1} << (cell % 64);
                  emit(box, axis + 1, label, single, boxes);
              });
    box = before;
}

void Map::collect(uint32_t id, std::vector<uint64_t>& box, int32_t label, bool single, Boxes& boxes) const
{
    const Node node = nodes_.read(id);
    if (!node.is_inner())
    {
        const int32_t own = node.is_leaf() ? static_cast<int32_t>(node.label()) : undecided;
        return label == undecided || label == own ? emit(box, 0, own, single, boxes) : void();
    }
    for (const bool right : {false, true})
    {
        const uint32_t axis = forest_.lattice.tests[node.test()].axis;
        const auto first = box.begin() + forest_.lattice.word_start[axis];
        const std::vector<uint64_t> before(first, box.begin() + forest_.lattice.word_start[axis + 1]);
        keep_side(forest_.lattice, box, node.test(), right);
        collect(node.child() + right, box, label, single, boxes);
        std::copy(before.begin(), before.end(), first);
    }
}

Boxes Map::boxes(int32_t label, bool single_categories) const
{
    Boxes boxes;
    std::vector<uint64_t> box = whole_box(forest_.lattice);
    collect(0, box, label, single_categories, boxes);
    return boxes;
}
}  // namespace cfmaps
