// The map as a file holds it.

#include "map.hpp"

#include <deque>
#include <stdexcept>

namespace cfmaps
{
namespace
{
/// Lays nodes out so that a way from the root to a leaf crosses few pages: each subtree goes level by level until it
/// fills a page, and those below it follow, one after the other.
class Packer
{
public:
    Packer(const Nodes& nodes, std::vector<uint64_t>& packed) : nodes_(nodes), packed_(packed) {}

    void pack()
    {
        place(0);
        later_.assign(next_.begin(), next_.end());
        while (!later_.empty())
        {
            const Placed top = later_.back();
            later_.pop_back();
            pack_page(top);
        }
    }

private:
    /// An inner node whose children are still to be placed.
    struct Placed
    {
        uint32_t at, child;
    };

    void place(uint32_t id)
    {
        const Node node = nodes_.read(id);
        if (node.is_inner())
            next_.push_back({static_cast<uint32_t>(packed_.size()), node.child()});
        packed_.push_back(node.word());
    }

    void pack_page(Placed top)
    {
        const size_t full = packed_.size() + page_nodes;
        next_.assign(1, top);
        while (!next_.empty() && packed_.size() < full)
        {
            const auto [at, child] = next_.front();
            next_.pop_front();
            if (packed_.size() > nodes_.n_taken())
                throw CorruptMap("a node has two parents");
            const Node node(packed_[at]);
            packed_[at] = Node::inner(node.test(), static_cast<uint32_t>(packed_.size()), node.classes()).word();
            place(child);
            place(child + 1);
        }
        later_.insert(later_.end(), next_.rbegin(), next_.rend());
    }

    const Nodes& nodes_;
    std::vector<uint64_t>& packed_;
    std::deque<Placed> next_;
    std::vector<Placed> later_;
};
}  // namespace

std::vector<uint64_t> Map::pack()
{
    if (builder_ == std::this_thread::get_id())
        throw std::invalid_argument("a map cannot be saved from the progress function of its own build");
    const std::lock_guard lock(growing_);
    std::vector<uint64_t> packed;
    packed.reserve(census().n_nodes);
    Packer(nodes_, packed).pack();
    return packed;
}
}  // namespace cfmaps
