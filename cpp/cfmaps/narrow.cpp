#include "narrow.hpp"

#include "dispatch.hpp"

#include <algorithm>
#include <limits>

namespace cfmaps
{
namespace
{
/// One lane, sorted leaves: the highest bit is the largest value, the lowest bit the smallest.
CFMAPS_FOR_EVERY_PROCESSOR
void narrow_sorted(const Forest& forest, const State& from, State& to, const Leaves* row)
{
    const int32_t *most = forest.most.data(), *least = forest.least.data();
    int32_t constant = from.lanes[0], low = 0, high = 0;
    LiveTree* next = to.live.data();
    for (const LiveTree *tree = from.live.data(), *end = tree + from.n_live; tree != end; ++tree)
    {
        const uint32_t piece = tree->piece;
        const Leaves leaves = tree->leaves & row[piece];
        const int32_t largest = most[piece * piece_leaves + std::bit_width(leaves) - 1];
        const int32_t smallest = least[piece * piece_leaves + std::countr_zero(leaves)];
        const bool live = largest != smallest;
        *next = {leaves, piece, largest - smallest, tree->node};
        next += live;
        constant += live ? 0 : smallest;
        low += live ? smallest : 0;
        high += live ? largest : 0;
    }
    to.n_live = static_cast<uint32_t>(next - to.live.data());
    to.lanes[0] = constant;
    to.lanes[1] = low;
    to.lanes[2] = high;
}

/// Extremes of the leaves of a mask, in every lane.
inline void extremes(const Forest& forest, uint32_t piece, Leaves leaves, int32_t* low, int32_t* high)
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
void narrow_lanes(const Forest& forest, const State& from, State& to, const Leaves* row, int32_t* extreme)
{
    const uint32_t n_lanes = forest.lanes.n_lanes;
    int32_t *smallest = extreme, *largest = extreme + n_lanes;
    std::copy_n(from.lanes.data(), n_lanes, to.constant());
    std::fill_n(to.low(), 2 * n_lanes, 0);
    uint32_t n_live = 0;
    for (uint32_t tree = 0; tree < from.n_live; ++tree)
    {
        const uint32_t piece = from.live[tree].piece;
        const Leaves leaves = from.live[tree].leaves & row[piece];
        extremes(forest, piece, leaves, smallest, largest);
        int32_t spread = 0;
        for (uint32_t lane = 0; lane < n_lanes; ++lane)
            spread += largest[lane] - smallest[lane];
        to.live[n_live] = {leaves, piece, spread, from.live[tree].node};
        n_live += spread != 0;
        int32_t* sum = spread ? to.low() : to.constant();
        for (uint32_t lane = 0; lane < n_lanes; ++lane)
            sum[lane] += smallest[lane];
        for (uint32_t lane = 0; spread && lane < n_lanes; ++lane)
            to.high()[lane] += largest[lane];
    }
    to.n_live = n_live;
}

CFMAPS_FOR_EVERY_PROCESSOR
void join_rows(Leaves* out, const Leaves* first, const Leaves* second, size_t n)
{
    for (size_t piece = 0; piece < n; ++piece)
        out[piece] = first[piece] & second[piece];
}

CFMAPS_FOR_EVERY_PROCESSOR
void unite_rows(Leaves* out, const Leaves* row, size_t n)
{
    for (size_t piece = 0; piece < n; ++piece)
        out[piece] |= row[piece];
}
}  // namespace

void State::reserve(size_t n_trees, size_t n_lanes)
{
    if (live.size() <= n_trees)
        live.resize(n_trees + 1);  // a tree that leaves the list is written once past its end
    if (lanes.size() != 3 * n_lanes)
        lanes.resize(3 * n_lanes);
}

Narrower::Narrower(const Forest& forest)
    : forest_(forest), joined_(forest.n_pieces), category_(forest.n_pieces), weight_(forest.lattice.tests.size(), 0),
      extreme_(2 * forest.lanes.n_lanes)
{
}

void Narrower::start(State& state, ConstBox box)
{
    state.reserve(forest_.roots.size(), forest_.lanes.n_lanes);
    state.n_live = static_cast<uint32_t>(forest_.roots.size());
    std::copy(forest_.constants.begin(), forest_.constants.end(), state.constant());
    for (uint32_t tree = 0; tree < state.n_live; ++tree)
        state.live[tree] = {forest_.all_leaves[forest_.roots[tree]], forest_.roots[tree], 0, 0};
    clear();
    for (size_t axis = 0; axis < forest_.lattice.n_axes(); ++axis)
        add_axis(box, axis);
    apply(state, state, box);
}

void Narrower::add_row(const Leaves* row)
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
        if (n_rows_ == 0)  // the next axis will use category_ again
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
            joined_[from.live[tree].piece] = forest_.reached(from.live[tree].piece, box);
        only_row_ = joined_.data();
    }
    else if (n_rows_ == 0)
    {
        std::fill(joined_.begin(), joined_.end(), ~Leaves{0});
        only_row_ = joined_.data();
    }
    narrow(from, to, only_row_);
    if (forest_.has_links)
        follow_links(to, box);
    clear();
}

void Narrower::narrow(const State& from, State& to, const Leaves* row)
{
    if (forest_.lanes.n_lanes == 1)
        narrow_sorted(forest_, from, to, row);
    else
        narrow_lanes(forest_, from, to, row, extreme_.data());
}

/// Below every link that is the only leaf left.
void Narrower::descend(LiveTree& tree, ConstBox box) const
{
    while (std::has_single_bit(tree.leaves))
    {
        const int32_t below = forest_.link[forest_.leaf_of(tree.piece, std::countr_zero(tree.leaves))];
        if (below < 0)
            return;
        tree = {forest_.reached(static_cast<uint32_t>(below), box), static_cast<uint32_t>(below), 0, 0};
    }
}

/// Goes on below links. Sorted pieces with links answer for more leaves than they reach, so this looks at each tree.
void Narrower::follow_links(State& state, ConstBox box)
{
    const uint32_t n_lanes = forest_.lanes.n_lanes;
    int32_t *smallest = extreme_.data(), *largest = smallest + n_lanes;
    std::fill_n(state.low(), 2 * n_lanes, 0);
    uint32_t n_live = 0;
    for (uint32_t place = 0; place < state.n_live; ++place)
    {
        LiveTree tree = state.live[place];
        descend(tree, box);
        extremes(forest_, tree.piece, tree.leaves, smallest, largest);
        if (std::has_single_bit(tree.leaves))
            std::copy_n(largest, n_lanes, smallest);
        tree.spread = 0;
        for (uint32_t lane = 0; lane < n_lanes; ++lane)
            tree.spread += largest[lane] - smallest[lane];
        for (uint32_t lane = 0; lane < n_lanes; ++lane)
        {
            (tree.spread ? state.low() : state.constant())[lane] += smallest[lane];
            state.high()[lane] += tree.spread ? largest[lane] : 0;
        }
        state.live[n_live] = tree;
        n_live += tree.spread != 0;
    }
    state.n_live = n_live;
}

int32_t Narrower::best_cut(State& state)
{
    int32_t best = -1;
    int64_t most = 0;
    for (uint32_t place = 0; place < state.n_live; ++place)
    {
        LiveTree& tree = state.live[place];
        const Inner* inner = forest_.inner_of(tree.piece);
        const Inner* at = inner + tree.node;
        for (;;)
        {
            const bool left = tree.leaves & at->left_leaves, right = tree.leaves & at->right_leaves;
            if (left && right)
                break;
            at = inner + (left ? at->left : at->right);
        }
        tree.node = static_cast<uint32_t>(at - inner);
        const int64_t weight = weight_[at->test] += tree.spread;
        best =
            weight > most ? static_cast<int32_t>(at->test) : best;  // weights only grow: the last to lead is the best
        most = std::max(most, weight);
    }
    for (uint32_t place = 0; place < state.n_live; ++place)
        weight_[forest_.inner_of(state.live[place].piece)[state.live[place].node].test] = 0;
    return best;
}

/// A bound on how far one class is ahead of another.
int64_t Narrower::least_lead(const State& state, uint32_t winner, uint32_t loser) const
{
    const Lanes& lanes = forest_.lanes;
    if (!lanes.pairs)
        return state.least(winner) - state.most(loser);
    return winner < loser ? state.least(lanes.pair(winner, loser)) : -state.most(lanes.pair(loser, winner));
}

/// Cuts that the score surely reaches.
uint32_t Narrower::least_band(const State& state) const
{
    const auto& cuts = forest_.lanes.cuts;
    return static_cast<uint32_t>(std::upper_bound(cuts.begin(), cuts.end(), state.least(0) - forest_.slack) -
                                 cuts.begin());
}

/// Cuts that the score may reach.
uint32_t Narrower::most_band(const State& state) const
{
    const auto& cuts = forest_.lanes.cuts;
    return static_cast<uint32_t>(std::upper_bound(cuts.begin(), cuts.end(), state.most(0) + forest_.slack) -
                                 cuts.begin());
}

/// How far both ends of a score's range are within a band, together.
int64_t Narrower::lead_of_band(const State& state, uint32_t label) const
{
    const auto& cuts = forest_.lanes.cuts;
    const int64_t middle = state.least(0) + state.most(0);
    int64_t lead = std::numeric_limits<int64_t>::max();
    if (label > 0)
        lead = std::min(lead, middle - 2 * cuts[label - 1]);
    if (label < cuts.size())
        lead = std::min(lead, 2 * cuts[label] - middle);
    return lead;
}

bool Narrower::surely_beats(const State& state, uint32_t winner, uint32_t loser) const
{
    const int64_t ahead = least_lead(state, winner, loser);
    const int64_t slack = forest_.lanes.pairs ? forest_.slack : 2 * int64_t{forest_.slack};
    return winner < loser ? ahead >= slack : ahead > slack;  // a tie goes to the first class
}

int64_t Narrower::lead(const State& state, Wanted wanted) const
{
    if (forest_.lanes.bands)
        return wanted.all_others ? -lead_of_band(state, wanted.label) : lead_of_band(state, wanted.label);
    int64_t smallest = std::numeric_limits<int64_t>::max();
    for (uint32_t other = 0; other < forest_.lanes.n_classes; ++other)
        if (other != wanted.label)
        {
            const int64_t twice = least_lead(state, wanted.label, other) - least_lead(state, other, wanted.label);
            smallest = std::min(smallest, twice);
        }
    return wanted.all_others ? -smallest : smallest;
}

bool Narrower::surely_beaten(const State& state, uint32_t label) const
{
    if (forest_.lanes.bands)
        return label < least_band(state) || label > most_band(state);
    for (uint32_t other = 0; other < forest_.lanes.n_classes; ++other)
        if (other != label && surely_beats(state, other, label))
            return true;
    return false;
}

bool Narrower::surely_wins(const State& state, uint32_t label) const
{
    if (forest_.lanes.bands)
        return label == least_band(state) && label == most_band(state);
    for (uint32_t other = 0; other < forest_.lanes.n_classes; ++other)
        if (other != label && !surely_beats(state, label, other))
            return false;
    return true;
}

int32_t Narrower::winner(const State& state) const
{
    if (forest_.lanes.bands)
        return least_band(state) == most_band(state) ? static_cast<int32_t>(least_band(state)) : undecided;
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
}  // namespace cfmaps
