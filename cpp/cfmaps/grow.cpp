#include "grow.hpp"

namespace cfmaps
{
namespace
{
constexpr uint32_t check_every = 64;
}  // namespace

Grower::Grower(const Forest& forest, Nodes& nodes) : forest_(forest), nodes_(nodes), narrower_(forest), pairs_(nodes)
{
}

Node Grower::grow(uint32_t id, ConstBox box, Limits& limits, Reach* reach)
{
    limits_ = &limits;
    credit_ = 0;
    reach_ = reach;
    frame(0).box.assign(box.begin(), box.end());
    const Node node = grow_any(id, 0);
    limits_->give_back_splits(std::exchange(credit_, 0));
    return node;
}

Node Grower::split_once(uint32_t id, ConstBox box, Limits& limits)
{
    limits_ = &limits;
    credit_ = 0;
    Frame& top = frame(0);
    top.box.assign(box.begin(), box.end());
    narrower_.start(top.state, box);
    const Decision decision = decide(top);
    if (decision.label != undecided)
        nodes_.write(id, Node::leaf(decision.label));
    else if (may_split())
    {
        const uint32_t pair = pairs_.take();
        const uint8_t classes = possible(top.state);
        nodes_.write(pair, Node::open(classes));
        nodes_.write(pair + 1, Node::open(classes));
        nodes_.write(id, Node::inner(decision.cut, pair, classes));
    }
    limits_->give_back_splits(std::exchange(credit_, 0));
    return nodes_.read(id);
}

Node Grower::settle(uint32_t id, uint32_t test, uint32_t pair, bool is_new)
{
    const Node left = nodes_.read(pair), right = nodes_.read(pair + 1);
    const bool merge = left.is_leaf() && right.is_leaf() && left.label() == right.label();
    credit_ += merge;
    if (merge && is_new && pairs_.is_last(pair))  // a reader may stand before a pair that it has seen
        pairs_.give_back();
    const Node node = merge ? left : Node::inner(test, pair, left.classes() | right.classes());
    if (is_new || node.word() != nodes_.read(id).word())
        nodes_.write(id, node);
    return node;
}

Grower::Frame& Grower::frame(size_t depth)
{
    while (frames_.size() <= depth)  // a deque: frames in use stay where they are
        frames_.emplace_back();
    return frames_[depth];
}

Grower::Decision Grower::decide(Frame& frame)
{
    const int32_t label = narrower_.winner(frame.state);
    if (label != undecided)
        return {label, -1};
    if (frame.state.n_live > 0)
        return {undecided, narrower_.best_cut(frame.state)};
    const Verdict verdict = judge(forest_.trees, forest_.lattice, frame.box);
    if (verdict.possible.size() == 1)
        return {static_cast<int32_t>(verdict.possible[0]), -1};
    return {undecided, verdict.cut};
}

Node Grower::grow_any(uint32_t id, size_t depth)
{
    const Node node = nodes_.read(id);
    if (node.is_leaf() || limits_->is_stopped())
        return node;
    if (node.is_inner())
        return grow_inner(id, node, depth);
    narrower_.start(frame(depth).state, frame(depth).box);
    return grow_open(id, depth);
}

/// Moves the next frame to one side of the test; false when that side is out of reach.
bool Grower::enter(uint32_t test, bool right, size_t depth, double& before)
{
    Frame& below = frame(depth + 1);
    below.box = frame(depth).box;
    keep_side(forest_.lattice, below.box, test, right);
    if (!reach_)
        return true;
    const uint32_t axis = forest_.lattice.tests[test].axis;
    const double cost = reach_->costs.cell(axis, reach_->costs.nearest(below.box, axis));
    before = reach_->total.cost(axis);
    if (reach_->total.with(axis, cost) > reach_->radius)
        return false;
    reach_->total.set(axis, cost);
    return true;
}

Node Grower::grow_inner(uint32_t id, Node node, size_t depth)
{
    expect_both_sides(forest_.lattice, frame(depth).box, node.test());
    for (const bool right : {false, true})
    {
        double before = 0;
        if (!enter(node.test(), right, depth, before))
            continue;
        grow_any(node.child() + right, depth + 1);
        if (reach_)
            reach_->total.set(forest_.lattice.tests[node.test()].axis, before);
    }
    return settle(id, node.test(), node.child(), false);
}

Node Grower::grow_open(uint32_t id, size_t depth)
{
    Frame& here = frame(depth);
    const Decision decision = decide(here);
    if (decision.label != undecided || !may_split())
    {
        const Node node = decision.label != undecided ? Node::leaf(decision.label) : Node::open(possible(here.state));
        nodes_.write(id, node);
        return node;
    }
    const uint32_t pair = pairs_.take(), test = decision.cut;
    for (const bool right : {false, true})
    {
        double before = 0;
        if (!enter(test, right, depth, before))
        {
            nodes_.write(pair + right, Node::open(possible(here.state)));
            continue;
        }
        Frame& below = frame(depth + 1);
        narrower_.add_side(below.box, test, right);
        narrower_.apply(here.state, below.state, below.box);
        grow_open(pair + right, depth + 1);
        if (reach_)
            reach_->total.set(forest_.lattice.tests[test].axis, before);
    }
    return settle(id, test, pair, true);
}

uint8_t Grower::possible(const State& state) const
{
    uint8_t classes = 0;
    for (uint32_t label = 0; label < forest_.lanes.n_classes; ++label)
        if (!narrower_.surely_beaten(state, label))
            classes |= Node::class_bit(label);
    return classes;
}

/// Takes one of the splits that are allowed; looks at the other limits now and then.
bool Grower::may_split()
{
    if (++since_check_ >= check_every)
    {
        since_check_ = 0;
        limits_->check(never);
    }
    if (nodes_.n_taken() * Nodes::most_bytes_per_node > limits_->most_bytes)
        limits_->stop(Stop::memory);
    if (limits_->is_stopped() || (credit_ == 0 && (credit_ = limits_->take_splits()) == 0))
        return false;
    --credit_;
    return true;
}
}  // namespace cfmaps
