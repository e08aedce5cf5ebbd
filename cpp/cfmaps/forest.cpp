#include "forest.hpp"

#include <algorithm>
#include <numeric>

namespace cfmaps
{
namespace
{
constexpr int32_t outside = -1;
constexpr size_t most_row_bytes = size_t{128} << 20;

/// A node of a tree without the tests that cannot split its box.
struct Simple
{
    int32_t test;  // -1 at a leaf
    int32_t left, right;
};

/// Where a test stands in a piece, and what it parts there.
struct Use
{
    uint32_t piece;
    Leaves left_leaves, right_leaves;
};
}  // namespace

class ForestBuilder
{
public:
    explicit ForestBuilder(Forest& forest)
        : forest_(forest), n_lanes_(forest.lanes.n_lanes), units_(forest.trees, forest.lanes),
          box_(whole_box(forest.lattice))
    {
    }

    void build()
    {
        forest_.slack = units_.slack();
        forest_.lanes.cuts = units_.cuts();
        forest_.constants = units_.constants();
        for (int32_t root : forest_.trees.roots)
            add_tree(root);
        fill_rows();
    }

private:
    void add_tree(int32_t root)
    {
        simple_.clear();
        low_.clear();
        high_.clear();
        const int32_t top = simplify(root);
        if (simple_[top].test >= 0)
            forest_.roots.push_back(cut_piece(top));
        else
            for (uint32_t lane = 0; lane < n_lanes_; ++lane)
                forest_.constants[lane] += low_[top * n_lanes_ + lane];
    }

    Sides sides_at(int32_t node) const
    {
        const int32_t test = forest_.trees.nodes[node].test;
        return test < 0 ? Sides{test == always_left, test == always_right} : sides_of(forest_.lattice, box_, test);
    }

    int32_t add_simple(Simple node)
    {
        simple_.push_back(node);
        low_.resize(simple_.size() * n_lanes_);
        high_.resize(simple_.size() * n_lanes_);
        return static_cast<int32_t>(simple_.size()) - 1;
    }

    /// The subtree as seen from the box, without tests that do not split it.
    int32_t simplify(int32_t node)
    {
        const std::vector<TreeNode>& nodes = forest_.trees.nodes;
        while (nodes[node].test != is_leaf)
        {
            const Sides sides = sides_at(node);
            if (sides.both())
                return simplify_split(node);
            node = sides.left ? nodes[node].left : nodes[node].right;
        }
        const int32_t leaf = add_simple({-1, -1, -1});
        units_.measure(forest_.trees.scores_of(node), &low_[leaf * n_lanes_]);
        std::copy_n(&low_[leaf * n_lanes_], n_lanes_, &high_[leaf * n_lanes_]);
        return leaf;
    }

    int32_t simplify_split(int32_t node)
    {
        const int32_t left = simplify_side(node, false), right = simplify_side(node, true);
        const int32_t split = add_simple({forest_.trees.nodes[node].test, left, right});
        bool same = simple_[left].test < 0 && simple_[right].test < 0;
        for (uint32_t lane = 0; lane < n_lanes_; ++lane)
        {
            int32_t& low = low_[split * n_lanes_ + lane];
            int32_t& high = high_[split * n_lanes_ + lane];
            low = std::min(low_[left * n_lanes_ + lane], low_[right * n_lanes_ + lane]);
            high = std::max(high_[left * n_lanes_ + lane], high_[right * n_lanes_ + lane]);
            same = same && low == high;
        }
        return same ? left : split;
    }

    int32_t simplify_side(int32_t node, bool right)
    {
        const Lattice& lattice = forest_.lattice;
        const TreeNode& split = forest_.trees.nodes[node];
        const uint32_t axis = lattice.tests[split.test].axis;
        const size_t first = lattice.word_start[axis];
        const uint64_t word = box_[first];
        std::vector<uint64_t> rest(box_.begin() + first + 1, box_.begin() + lattice.word_start[axis + 1]);
        keep_side(lattice, box_, split.test, right);
        const int32_t side = simplify(right ? split.right : split.left);
        box_[first] = word;
        std::copy(rest.begin(), rest.end(), box_.begin() + first + 1);
        return side;
    }

    /// Makes a piece of the subtree: breadth first, until it has as many leaves as bits; what is left below hangs on
    /// links.
    uint32_t cut_piece(int32_t top)
    {
        std::vector<int32_t> inside{top}, leaves;
        place_.resize(simple_.size());
        place_[top] = 0;
        for (size_t next = 0; next < inside.size(); ++next)
            for (int32_t child : {simple_[inside[next]].left, simple_[inside[next]].right})
            {
                const bool enters = simple_[child].test >= 0 && inside.size() + 1 < piece_leaves;
                place_[child] = enters ? static_cast<int32_t>(inside.size()) : outside;
                (enters ? inside : leaves).push_back(child);
            }
        if (n_lanes_ == 1)
            std::sort(leaves.begin(), leaves.end(),
                      [this](int32_t a, int32_t b) { return high_[a] != high_[b] ? high_[a] < high_[b] : a < b; });
        const uint32_t piece = static_cast<uint32_t>(forest_.n_pieces++);
        store_leaves(piece, leaves);
        store_inner(piece, inside, leaves);
        for (size_t leaf = 0; leaf < leaves.size(); ++leaf)
            if (simple_[leaves[leaf]].test >= 0)
            {
                const uint32_t below = cut_piece(leaves[leaf]);
                forest_.link[forest_.leaf_of(piece, leaf)] = static_cast<int32_t>(below);
                forest_.has_links = true;
            }
        return piece;
    }

    void store_leaves(uint32_t piece, const std::vector<int32_t>& leaves)
    {
        const size_t first = forest_.leaf_of(piece, 0);
        forest_.all_leaves.push_back(~Leaves{0} >> (piece_leaves - leaves.size()));
        forest_.link.resize(first + piece_leaves, -1);
        forest_.most.resize((first + piece_leaves) * n_lanes_);
        forest_.least.resize((first + piece_leaves) * n_lanes_);
        for (size_t leaf = 0; leaf < leaves.size(); ++leaf)
            for (uint32_t lane = 0; lane < n_lanes_; ++lane)
            {
                forest_.most[(first + leaf) * n_lanes_ + lane] = high_[leaves[leaf] * n_lanes_ + lane];
                forest_.least[(first + leaf) * n_lanes_ + lane] = low_[leaves[leaf] * n_lanes_ + lane];
            }
        if (n_lanes_ == 1)  // the lowest bit answers for the bits above it
            for (size_t leaf = leaves.size() - 1; leaf > 0; --leaf)
                forest_.least[first + leaf - 1] =
                    std::min(forest_.least[first + leaf - 1], forest_.least[first + leaf]);
    }

    /// Stores the inner nodes, children before parents, each with the leaves on its sides.
    void store_inner(uint32_t piece, const std::vector<int32_t>& inside, const std::vector<int32_t>& leaves)
    {
        for (size_t leaf = 0; leaf < leaves.size(); ++leaf)
            place_[leaves[leaf]] = ~static_cast<int32_t>(leaf);
        forest_.inner.resize(forest_.n_pieces * (piece_leaves - 1));
        Inner* inner = &forest_.inner[piece * (piece_leaves - 1)];
        const auto below = [&](int32_t child, uint8_t& at) -> Leaves
        {
            const int32_t place = place_[child];
            at = place < 0 ? no_inner : static_cast<uint8_t>(place);
            return place < 0 ? Leaves{1} << ~place : inner[place].left_leaves | inner[place].right_leaves;
        };
        for (size_t place = inside.size(); place-- > 0;)
        {
            const Simple& node = simple_[inside[place]];
            inner[place].test = node.test;
            inner[place].left_leaves = below(node.left, inner[place].left);
            inner[place].right_leaves = below(node.right, inner[place].right);
        }
    }

    /// Every place of every test, test by test; `first_use_` says where each begins.
    std::vector<Use> uses()
    {
        first_use_.assign(forest_.lattice.tests.size() + 2, 0);
        each_inner([&](uint32_t, const Inner& inner) { ++first_use_[inner.test + 2]; });
        std::partial_sum(first_use_.begin(), first_use_.end(), first_use_.begin());
        std::vector<Use> out(first_use_.back());
        each_inner([&](uint32_t piece, const Inner& inner)
                   { out[first_use_[inner.test + 1]++] = {piece, inner.left_leaves, inner.right_leaves}; });
        return out;
    }

    template <class Visit>
    void each_inner(Visit visit) const
    {
        for (uint32_t piece = 0; piece < forest_.n_pieces; ++piece)
        {
            const Inner* inner = forest_.inner_of(piece);
            for (int place = 0; place + 1 < std::popcount(forest_.all_leaves[piece]); ++place)
                visit(piece, inner[place]);
        }
    }

    void fill_rows()
    {
        const Lattice& lattice = forest_.lattice;
        size_t n_rows = 2 * lattice.tests.size();
        forest_.category_row_.assign(lattice.n_axes(), 0);
        for (size_t axis = 0; axis < lattice.n_axes(); ++axis)
            if (!lattice.is_ordered(axis))
            {
                forest_.category_row_[axis] = n_rows;
                n_rows += lattice.n_cells[axis];
            }
        if (n_rows * forest_.n_pieces * sizeof(Leaves) > most_row_bytes)
            return;
        forest_.has_rows = true;
        forest_.rows_.assign(n_rows * forest_.n_pieces, ~Leaves{0});
        uses_ = uses();
        for (size_t axis = 0; axis < lattice.n_axes(); ++axis)
            lattice.is_ordered(axis) ? fill_ordered(axis) : fill_categorical(axis);
    }

    Leaves* row(size_t index) { return forest_.rows_.data() + index * forest_.n_pieces; }

    std::span<const Use> places(uint32_t test) const
    {
        return std::span(uses_).subspan(first_use_[test], first_use_[test + 1] - first_use_[test]);
    }

    void fill_ordered(size_t axis)
    {
        const uint32_t first = forest_.lattice.first_test[axis], end = forest_.lattice.first_test[axis + 1];
        for (uint32_t test = first; test < end; ++test)  // begins right of the test: left of it is gone
        {
            if (test > first)
                std::copy_n(row(2 * (test - 1) + 1), forest_.n_pieces, row(2 * test + 1));
            for (const Use& use : places(test))
                row(2 * test + 1)[use.piece] &= ~use.left_leaves;
        }
        for (uint32_t test = end; test-- > first;)  // ends left of the test
        {
            if (test + 1 < end)
                std::copy_n(row(2 * (test + 1)), forest_.n_pieces, row(2 * test));
            for (const Use& use : places(test))
                row(2 * test)[use.piece] &= ~use.right_leaves;
        }
    }

    void fill_categorical(size_t axis)
    {
        const Lattice& lattice = forest_.lattice;
        for (uint32_t test = lattice.first_test[axis]; test < lattice.first_test[axis + 1]; ++test)
        {
            const auto& set = lattice.sets[lattice.tests[test].rank];
            for (uint32_t cell = 0; cell < lattice.n_cells[axis]; ++cell)
                for (const Use& use : places(test))
                    row(forest_.category_row_[axis] + cell)[use.piece] &=
                        set[cell / 64] >> (cell % 64) & 1 ? ~use.right_leaves : ~use.left_leaves;
        }
    }

    Forest& forest_;
    uint32_t n_lanes_;
    Units units_;
    std::vector<uint64_t> box_;
    std::vector<Simple> simple_;
    std::vector<int32_t> low_, high_;
    std::vector<int32_t> place_;  // of a simple node: among the inner nodes, or ~ its leaf
    std::vector<Use> uses_;
    std::vector<size_t> first_use_;
};

Forest::Forest(Lattice lattice_in, Trees trees_in)
    : lattice(std::move(lattice_in)), trees(std::move(trees_in)), lanes(trees)
{
    ForestBuilder(*this).build();
}

Leaves Forest::reached(uint32_t piece, ConstBox box) const
{
    Leaves leaves = all_leaves[piece];
    const int n_inner = std::popcount(leaves) - 1;
    for (const Inner* node = inner_of(piece); node < inner_of(piece) + n_inner; ++node)
    {
        const Sides sides = sides_of(lattice, box, node->test);
        leaves &= (sides.left ? ~Leaves{0} : ~node->left_leaves) & (sides.right ? ~Leaves{0} : ~node->right_leaves);
    }
    return leaves;
}
}  // namespace cfmaps
