#pragma once
// The counterfactual map of one model: its forest in rank space, and the partition grown so far.

#include "box_tree.hpp"
#include "grow.hpp"

#include <functional>
#include <mutex>

namespace cfmaps
{
/// What the partition holds now.
struct Census
{
    size_t n_nodes = 0, n_leaves = 0, n_open = 0;
};

/// Labelled boxes in the model's columns: closed ends on its grid.
struct Boxes
{
    std::vector<double> lower, upper;  // n_columns per box
    std::vector<int32_t> label;        // undecided where the map is open
};

class Map
{
public:
    Map(Lattice lattice, Trees trees, size_t n_columns);
    /// A map whose nodes lie in a file so far.
    Map(Lattice lattice, Trees trees, size_t n_columns, std::unique_ptr<StoredNodes> stored, bool is_complete);

    const Forest& forest() const { return forest_; }
    const Nodes& nodes() const { return nodes_; }
    size_t n_columns() const { return n_columns_; }

    /// Grows the whole map. What a limit leaves open stays open; true when nothing is.
    bool build(Limits& limits, unsigned n_threads, const std::function<void(double, size_t)>& progress);

    /// Grows what is within reach of a query, unless another thread is growing or the map is large enough.
    void grow_around(Reach& reach, Limits& limits);

    bool is_complete() const;
    /// Whether a query came before this one.
    bool was_asked() { return was_asked_.exchange(true, std::memory_order_relaxed); }
    Census census() const;
    /// The nodes that can be reached, as a file holds them. Nothing grows meanwhile.
    std::vector<uint64_t> pack();

    Boxes boxes(int32_t label, bool single_categories) const;
    /// The paper's index over the boxes of a class with single categories.
    BoxTree box_tree(int32_t label, size_t leaf_size, const Poll& poll = {}) const;
    /// The box of one class around the cells of a point, as a fresh map would cut it.
    std::vector<uint64_t> region(std::span<const uint32_t> cells) const;
    void bounds_of(ConstBox box, double* lower, double* upper) const;

    std::atomic<size_t> most_nodes{size_t{1} << 24};  // beyond this, queries answer but grow nothing

private:
    /// Visits all nodes, or those up to the first that `is_last` accepts; true if it met one.
    bool walk(const std::function<bool(Node)>& is_last) const;
    using Sink = std::function<void(ConstBox, int32_t)>;
    void collect(uint32_t id, std::vector<uint64_t>& box, int32_t label, bool single, const Sink& sink) const;
    void emit(std::vector<uint64_t>& box, size_t axis, int32_t label, bool single, const Sink& sink) const;
    CodedBoxes coded_boxes(int32_t label) const;
    void codes_of(ConstBox box, uint16_t* codes) const;

    Forest forest_;
    Nodes nodes_;
    size_t n_columns_;
    std::mutex growing_;  // one writer at a time; readers need no lock
    std::atomic<std::thread::id> builder_{};
    Grower grower_;
    mutable std::atomic<bool> is_complete_{false};
    std::atomic<bool> was_asked_{false};
};
}  // namespace cfmaps
