#include "map.hpp"

#include "parallel.hpp"

#include <deque>
#include <stdexcept>

namespace cfmaps
{
namespace
{
constexpr size_t tasks_per_thread = 64;

/// A part of the map that one thread grows, and the nodes above such parts.
struct Task
{
    uint32_t id;
    std::vector<uint64_t> box;
};
struct Joint
{
    uint32_t id, test, pair;
};

/// Names the thread that builds, as its progress function may call back.
class Builder
{
public:
    explicit Builder(std::atomic<std::thread::id>& name) : name_(name) { name_ = std::this_thread::get_id(); }
    ~Builder() { name_ = std::thread::id(); }
    Builder(const Builder&) = delete;
    Builder& operator=(const Builder&) = delete;

private:
    std::atomic<std::thread::id>& name_;
};

/// Opens the top of the map until it has enough parts for all threads.
std::vector<Joint> open_top(Grower& grower, const Nodes& nodes, const Lattice& lattice, size_t n_tasks,
                            std::deque<Task>& tasks, Limits& limits)
{
    std::vector<Joint> joints;
    tasks.push_back({0, whole_box(lattice)});
    std::vector<Task> finished;
    while (!tasks.empty() && tasks.size() < n_tasks && !limits.is_stopped())
    {
        const Task task = std::move(tasks.front());
        tasks.pop_front();
        Node node = nodes.read(task.id);
        if (node.is_open())
            node = grower.split_once(task.id, task.box, limits);
        if (!node.is_inner())
            continue;
        expect_both_sides(lattice, task.box, node.test());
        joints.push_back({task.id, node.test(), node.child()});
        for (const bool right : {false, true})
        {
            tasks.push_back({node.child() + right, task.box});
            keep_side(lattice, tasks.back().box, node.test(), right);
        }
    }
    return joints;
}
}  // namespace

Map::Map(Lattice lattice, Trees trees, size_t n_columns)
    : forest_(std::move(lattice), std::move(trees)), n_columns_(n_columns), grower_(forest_, nodes_)
{
    if (forest_.lattice.tests.size() >= Node::most_tests)
        throw std::invalid_argument("the model has more than 16 million distinct thresholds");
    nodes_.take_run();
    nodes_.write(0, Node::open(0xFF));
}

Map::Map(Lattice lattice, Trees trees, size_t n_columns, std::unique_ptr<StoredNodes> stored, bool is_complete)
    : forest_(std::move(lattice), std::move(trees)), n_columns_(n_columns), grower_(forest_, nodes_),
      is_complete_(is_complete)
{
    stored->limit(static_cast<uint32_t>(forest_.lattice.tests.size()), forest_.lanes.n_classes);
    nodes_.restore(std::move(stored));
}

bool Map::build(Limits& limits, unsigned n_threads, const std::function<void(double, size_t)>& progress)
{
    if (builder_ == std::this_thread::get_id())
        throw std::invalid_argument("build was called from its own progress function");
    const std::lock_guard lock(growing_);
    const Builder here(builder_);
    const size_t n_tasks = n_threads > 1 ? tasks_per_thread * n_threads : 1;
    std::deque<Task> tasks;
    const std::vector<Joint> joints = open_top(grower_, nodes_, forest_.lattice, n_tasks, tasks, limits);
    std::atomic<size_t> next{0}, n_done{0};
    const auto work = [&]
    {
        Grower grower(forest_, nodes_);
        for (size_t task; (task = next++) < tasks.size() && !limits.is_stopped(); ++n_done)
            grower.grow(tasks[task].id, tasks[task].box, limits);
    };
    const auto watch = [&]
    {
        limits.check(limits.deadline);
        progress(static_cast<double>(n_done) / static_cast<double>(tasks.size()), nodes_.n_taken());
    };
    run_threads(n_threads, work, watch, [&] { limits.stop(); });
    for (auto joint = joints.rbegin(); joint != joints.rend(); ++joint)
        grower_.settle(joint->id, joint->test, joint->pair, false);
    return is_complete();
}

void Map::grow_around(Reach& reach, Limits& limits)
{
    if (builder_ == std::this_thread::get_id())
        return;
    const std::unique_lock lock(growing_, std::try_to_lock);
    if (lock && nodes_.n_taken() < most_nodes)
        grower_.grow(0, whole_box(forest_.lattice), limits, &reach);
}

bool Map::is_complete() const
{
    if (!is_complete_.load(std::memory_order_acquire) && !walk([](Node node) { return node.is_open(); }))
        is_complete_.store(true, std::memory_order_release);
    return is_complete_.load(std::memory_order_acquire);
}

bool Map::walk(const std::function<bool(Node)>& is_last) const
{
    std::vector<uint32_t> waiting{0};
    for (size_t n_visited = 0; !waiting.empty(); ++n_visited)
    {
        const Node node = nodes_.read(waiting.back());
        waiting.pop_back();
        if (is_last(node))
            return true;
        if (n_visited > nodes_.n_taken())
            throw CorruptMap("a node has two parents");
        if (node.is_inner())
            waiting.insert(waiting.end(), {node.child() + 1, node.child()});
    }
    return false;
}

Census Map::census() const
{
    Census census;
    walk(
        [&census](Node node)
        {
            ++census.n_nodes;
            census.n_leaves += node.is_leaf();
            census.n_open += node.is_open();
            return false;
        });
    return census;
}
}  // namespace cfmaps
