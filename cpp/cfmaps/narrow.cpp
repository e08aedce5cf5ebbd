#include "narrow.hpp"

#include "dispatch.hpp"

#include <algorithm>

namespace cfmaps
{
namespace
{
/// One lane, sorted leaves: the highest bit is the largest value, the lowest bit the smallest.
CFMAPS_FOR_EVERY_PROCESSOR
void narrow_sorted(const Forest& forest, const State& from, State& to, const uint32_t* row)
{
    const int32_t *most = forest.most.data(), *least = forest.least.data();
    int32_t constant = from.constant[0], low = 0, high = 0;
    uint32_t n_live = 0;
    for (uint32_t tree = 0; tree < from.n_live; ++tree)
    {
        const uint32_t piece = from.piece[tree], leaves = from.leaves[tree] & row[piece];
        const int32_t largest = most[piece * piece_leaves + 31 - std::countl_zero(leaves)];
        const int32_t smallest = least[piece * piece_leaves + std::countr_zero(leaves)];
        const bool live = largest != smallest;
        to.leaves[n_live] = leaves;
        to.piece[n_live] = piece;
        to.node[n_live] = from.node[tree];
        to.spread[n_live] = largest - smallest;
        n_live += live;
        constant += live ? 0 : smallest;
        low += live ? smallest : 0;
        high += live ? largest : 0;
    }
    to.n_live = n_live;
    to.constant[0] = constant;
    to.low[0] = low;
    to.high[0] = high;
}

/// Extremes of the leaves of a mask, in every lane.
inline void extremes(const Forest& forest, uint32_t piece, uint32_t leaves, int32_t* low, int32_t* high)
{
    const uint32_t n_lanes = forest.lanes.n_lanes;
    const size_t first = forest.leaf_of(piece, 0);
    std::copy_n(&forest.least[(first + std::countr_zero(leaves)) * n_lanes], n_lanes, low);
    std::copy_n(&forest.most[(first + std::countr_zero(leaves)) * n_lanes], n_lanes, high);
    for (leaves &= leaves - 1; leaves; leaves &= leaves - 1)
    {
        const size_t leaf = (first + std::countr_zero(leaves)) * n_lanes;
        for (uint32_t lane = 0; lane < n_lanes; ++lane)
        {
            low[lane] = std::min(low[lane], forest.least[leaf + lane]);
            high[lane] = std::max(high[lane], forest.most[leaf + lane]);
        }
    }
}

CFMAPS_FOR_EVERY_PROCESSOR
void narrow_lanes(const Forest& forest, const State& from, State& to, const uint32_t* row)
{
    const uint32_t n_lanes = forest.lanes.n_lanes;
    int32_t low[64], high[64]; // pairs of 8 classes make 28 lanes; more classes take the vectors below
    std::vector<int32_t> many;
    if (n_lanes > 64)
        many.resize(2 * n_lanes);
    int32_t *smallest = many.empty() ? low : many.data(), *largest = many.empty() ? high : many.data() + n_lanes;
    to.constant = from.constant;
    std::fill_n(to.low.begin(), n_lanes, 0);
    std::fill_n(to.high.begin(), n_lanes, 0);
    uint32_t n_live = 0;
    for (uint32_t tree = 0; tree < from.n_live; ++tree)
    {
        const uint32_t piece = from.piece[tree], leaves = from.leaves[tree] & row[piece];
        extremes(forest, piece, leaves, smallest, largest);
        int32_t spread = 0;
        for (uint32_t lane = 0; lane < n_lanes; ++lane)
            spread += largest[lane] - smallest[lane];
        to.leaves[n_live] = leaves;
        to.piece[n_live] = piece;
        to.node[n_live] = from.node[tree];
        to.spread[n_live] = spread;
        n_live += spread != 0;
        int32_t* sum = spread ? to.low.data() : to.constant.data();
        for (uint32_t lane = 0; lane < n_lanes; ++lane)
            sum[lane] += smallest[lane];
        for (uint32_t lane = 0; spread && lane < n_lanes; ++lane)
            to.high[lane] += largest[lane];
    }
    to.n_live = n_live;
}

CFMAPS_FOR_EVERY_PROCESSOR
void join_rows(uint32_t* out, const uint32_t* first, const uint32_t* second, size_t n)
{
    for (size_t piece = 0; piece < n; ++piece)
        out[piece] = first[piece] & second[piece];
}

CFMAPS_FOR_EVERY_PROCESSOR
void unite_rows(uint32_t* out, const uint32_t* row, size_t n)
{
    for (size_t piece = 0; piece < n; ++piece)
        out[piece] |= row[piece];
}
} // namespace

void State::reserve(size_t n_trees, size_t n_lanes)
{
    leaves.resize(n_trees + 1); // a tree that leaves the list is written once past its end
    piece.resize(n_trees + 1);
    spread.resize(n_trees + 1);
    node.resize(n_trees + 1);
    constant.resize(n_lanes);
    low.resize(n_lanes);
    high.resize(n_lanes);
}

Narrower::Narrower(const Forest& forest)
    : forest_(forest), joined_(forest.n_pieces), category_(forest.n_pieces), weight_(forest.lattice.tests.size(), 0)
{
}

void Narrower::start(State& state, ConstBox box)
{
    state.reserve(forest_.roots.size(), forest_.lanes.n_lanes);
    state.n_live = static_cast<uint32_t>(forest_.roots.size());
    state.constant = forest_.constants;
    for (uint32_t tree = 0; tree < state.n_live; ++tree)
    {
        state.piece[tree] = forest_.roots[tree];
        state.leaves[tree] = forest_.all_leaves[forest_.roots[tree]];
        state.node[tree] = 0;
    }
    clear();
    for (size_t axis = 0; axis < forest_.lattice.n_axes(); ++axis)
        add_axis(box, axis);
    apply(state, state, box);
}

void Narrower::add_row(const uint32_t* row)
{
    if (n_rows_ == 0)
        only_row_ = row;
    else
    {
        join_rows(joined_.data(), only_row_, row, forest_.n_pieces);
        only_row_ = joined_.data();
    }
    ++n_rows_;
}

void Narrower::add_axis(ConstBox box, size_t axis)
{
    const Lattice& lattice = forest_.lattice;
    if (!forest_.has_rows)
        return;
    const uint64_t word = box[lattice.word_start[axis]];
    if (!lattice.is_ordered(axis))
    {
        std::fill(category_.begin(), category_.end(), 0);
        each_cell(lattice, box, axis, [&](uint32_t cell)
                  { unite_rows(category_.data(), forest_.row_of_category(axis, cell), forest_.n_pieces); });
        if (n_rows_ == 0) // the next axis will use category_ again
            std::copy(category_.begin(), category_.end(), joined_.begin());
        add_row(n_rows_ == 0 ? joined_.data() : category_.data());
        return;
    }
    if (high_end(word) + 1 < lattice.n_cells[axis])
        add_row(forest_.row_up_to(axis, high_end(word)));
    if (low_end(word) > 0)
        add_row(forest_.row_from(axis, low_end(word)));
}

void Narrower::add_side(ConstBox box, uint32_t test, bool right)
{
    const uint32_t axis = forest_.lattice.tests[test].axis;
    if (!forest_.lattice.is_ordered(axis))
        add_axis(box, axis);
    else if (forest_.has_rows)
        add_row(right ? forest_.row_from(axis, forest_.lattice.tests[test].rank + 1)
                      : forest_.row_up_to(axis, forest_.lattice.tests[test].rank));
}

void Narrower::apply(const State& from, State& to, ConstBox box)
{
    if (&from != &to)
        to.reserve(from.n_live, forest_.lanes.n_lanes);
    if (!forest_.has_rows)
    {
        for (uint32_t tree = 0; tree < from.n_live; ++tree)
            joined_[from.piece[tree]] = forest_.reached(from.piece[tree], box);
        only_row_ = joined_.data();
    }
    else if (n_rows_ == 0)
    {
        std::fill(joined_.begin(), joined_.end(), ~uint32_t{0});
        only_row_ = joined_.data();
    }
    narrow(from, to, only_row_);
    if (forest_.has_links)
        follow_links(to, box);
    clear();
}

void Narrower::narrow(const State& from, State& to, const uint32_t* row)
{
    if (forest_.lanes.n_lanes == 1)
        narrow_sorted(forest_, from, to, row);
    else
        narrow_lanes(forest_, from, to, row);
}

/// The leaves of a tree over a box, below every link that is the only leaf left.
void Narrower::descend(uint32_t& piece, uint32_t& leaves, uint8_t& node, ConstBox box) const
{
    while (std::has_single_bit(leaves))
    {
        const int32_t below = forest_.link[forest_.leaf_of(piece, std::countr_zero(leaves))];
        if (below < 0)
            return;
        piece = static_cast<uint32_t>(below);
        leaves = forest_.reached(piece, box);
        node = 0;
    }
}

/// Goes on below links. Sorted pieces with links answer for more leaves than they reach, so this looks at each tree.
void Narrower::follow_links(State& state, ConstBox box)
{
    const uint32_t n_lanes = forest_.lanes.n_lanes;
    std::vector<int32_t> smallest(n_lanes), largest(n_lanes);
    std::fill_n(state.low.begin(), n_lanes, 0);
    std::fill_n(state.high.begin(), n_lanes, 0);
    uint32_t n_live = 0;
    for (uint32_t tree = 0; tree < state.n_live; ++tree)
    {
        uint32_t piece = state.piece[tree], leaves = state.leaves[tree];
        uint8_t node = state.node[tree];
        descend(piece, leaves, node, box);
        extremes(forest_, piece, leaves, smallest.data(), largest.data());
        if (std::has_single_bit(leaves))
            smallest = largest;
        int32_t spread = 0;
        for (uint32_t lane = 0; lane < n_lanes; ++lane)
        {
            spread += largest[lane] - smallest[lane];
            state.low[lane] += smallest[lane];
            state.high[lane] += largest[lane];
        }
        if (spread == 0)
            for (uint32_t lane = 0; lane < n_lanes; ++lane)
            {
                state.constant[lane] += smallest[lane];
                state.low[lane] -= smallest[lane];
                state.high[lane] -= smallest[lane];
            }
        state.piece[n_live] = piece;
        state.leaves[n_live] = leaves;
        state.node[n_live] = node;
        state.spread[n_live] = spread;
        n_live += spread != 0;
    }
    state.n_live = n_live;
}

int32_t Narrower::best_cut(State& state)
{
    for (uint32_t tree = 0; tree < state.n_live; ++tree)
    {
        const Inner* inner = forest_.inner_of(state.piece[tree]);
        const uint32_t leaves = state.leaves[tree];
        uint8_t at = state.node[tree];
        for (;;)
        {
            if (!(leaves & inner[at].left_leaves))
                at = inner[at].right;
            else if (!(leaves & inner[at].right_leaves))
                at = inner[at].left;
            else
                break;
        }
        state.node[tree] = at;
        int64_t& weight = weight_[inner[at].test];
        if (weight == 0)
            weighed_.push_back(inner[at].test);
        weight += state.spread[tree];
    }
    int32_t best = -1;
    for (uint32_t test : weighed_)
        if (best < 0 || weight_[test] > weight_[best])
            best = static_cast<int32_t>(test);
    for (uint32_t test : weighed_)
        weight_[test] = 0;
    weighed_.clear();
    return best;
}

bool Narrower::surely_beats(const State& state, uint32_t winner, uint32_t loser) const
{
    const Lanes& lanes = forest_.lanes;
    int64_t ahead; // a bound on how far the winner leads
    if (!lanes.pairs)
        ahead = int64_t{state.constant[winner]} + state.low[winner] - state.constant[loser] - state.high[loser];
    else if (winner < loser)
    {
        const uint32_t lane = lanes.pair(winner, loser);
        ahead = int64_t{state.constant[lane]} + state.low[lane];
    }
    else
    {
        const uint32_t lane = lanes.pair(loser, winner);
        ahead = -(int64_t{state.constant[lane]} + state.high[lane]);
    }
    const int64_t slack = lanes.pairs ? forest_.slack : 2 * int64_t{forest_.slack};
    return winner < loser ? ahead >= slack : ahead > slack; // a tie goes to the first class
}

bool Narrower::surely_beaten(const State& state, uint32_t label) const
{
    for (uint32_t other = 0; other < forest_.lanes.n_classes; ++other)
        if (other != label && surely_beats(state, other, label))
            return true;
    return false;
}

bool Narrower::surely_wins(const State& state, uint32_t label) const
{
    for (uint32_t other = 0; other < forest_.lanes.n_classes; ++other)
        if (other != label && !surely_beats(state, label, other))
            return false;
    return true;
}

int32_t Narrower::winner(const State& state) const
{
    for (uint32_t label = 0; label < forest_.lanes.n_classes; ++label)
        if (surely_wins(state, label))
            return static_cast<int32_t>(label);
    return undecided;
}

bool Narrower::may_hold(const State& state, Wanted wanted) const
{
    return wanted.all_others ? !surely_wins(state, wanted.label) : !surely_beaten(state, wanted.label);
}

bool Narrower::surely_holds(const State& state, Wanted wanted) const
{
    return wanted.all_others ? surely_beaten(state, wanted.label) : surely_wins(state, wanted.label);
}
} // namespace cfmaps
