#pragma once
// Growing the map: an open leaf is split until every box below it has one class.

#include "costs.hpp"
#include "limits.hpp"
#include "narrow.hpp"
#include "nodes.hpp"

#include <deque>
#include <utility>

namespace cfmaps
{
/// The neighbourhood of a query: what is farther is left as it is.
struct Reach
{
    const Costs& costs;
    Total total;
    double radius;
};

/// One thread's hands at the map. Only nodes below the one it was given are written.
class Grower
{
public:
    Grower(const Forest& forest, Nodes& nodes);

    /// Grows all below a node, or all of it within reach, and gives the node as it is afterwards.
    Node grow(uint32_t id, ConstBox box, Limits& limits, Reach* reach = nullptr);

    /// Splits an open leaf once if the limits allow it, or finds its class.
    Node split_once(uint32_t id, ConstBox box, Limits& limits);

    /// Writes an inner node over its children, or the leaf that two leaves of one class make together. A pair that no
    /// reader can have seen is used again.
    Node settle(uint32_t id, uint32_t test, uint32_t pair, bool is_new);

private:
    struct Frame
    {
        std::vector<uint64_t> box;
        State state;
    };
    struct Decision
    {
        int32_t label;  // or undecided, then there is a cut
        int32_t cut;
    };

    Frame& frame(size_t depth);
    Decision decide(Frame& frame);
    Node grow_any(uint32_t id, size_t depth);
    Node grow_inner(uint32_t id, Node node, size_t depth);
    Node grow_open(uint32_t id, size_t depth);
    bool enter(uint32_t test, bool right, size_t depth, double& before);
    uint8_t possible(const State& state) const;
    bool may_split();

    const Forest& forest_;
    Nodes& nodes_;
    Limits* limits_ = nullptr;
    Narrower narrower_;
    Pairs pairs_;
    Reach* reach_ = nullptr;
    std::deque<Frame> frames_;
    size_t credit_ = 0;  // splits this thread may still make
    uint32_t since_check_ = 0;
};
}  // namespace cfmaps
