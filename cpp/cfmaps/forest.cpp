#include "forest.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

namespace cfmaps
{
namespace
{
constexpr uint32_t most_pair_classes = 8;
constexpr size_t most_row_bytes = size_t{128} << 20;

/// A node of a tree without the tests that cannot split its box.
struct Simple
{
    int32_t test; // -1 at a leaf
    int32_t left, right;
};

/// Where a test stands in a piece, and what it parts there.
struct Use
{
    uint32_t piece, left_leaves, right_leaves;
};
} // namespace

Lanes::Lanes(uint32_t n_classes)
    : n_classes(n_classes), pairs(n_classes <= most_pair_classes),
      n_lanes(pairs ? std::max(1u, n_classes * (n_classes - 1) / 2) : n_classes)
{
}

void Lanes::margins(const double* scores, double* out) const
{
    if (!pairs)
        std::copy(scores, scores + n_classes, out);
    else if (n_classes < 2)
        *out = 0;
    else
        for (uint32_t second = 1; second < n_classes; ++second)
            for (uint32_t first = 0; first < second; ++first)
                out[pair(first, second)] = scores[first] - scores[second];
}

class ForestBuilder
{
public:
    explicit ForestBuilder(Forest& forest)
        : forest_(forest), n_lanes_(forest.lanes.n_lanes), box_(whole_box(forest.lattice)), margins_(n_lanes_)
    {
    }

    void build()
    {
        measure();
        forest_.constants = in_units(forest_.trees.init.data());
        for (int32_t root : forest_.trees.roots)
            add_tree(root);
        fill_rows();
    }

private:
    /// Chooses the unit of the integers, and bounds what rounding, theirs and the model's, can do to a sum.
    void measure()
    {
        const Trees& trees = forest_.trees;
        const double n_trees = static_cast<double>(trees.roots.size());
        double largest = 0;
        for (size_t node = 0; node < trees.test.size(); ++node)
            for (size_t score = 0; trees.test[node] == is_leaf && score < trees.n_scores(); ++score)
                largest = std::max(largest, std::abs(trees.scores_of(node)[score]));
        double total = n_trees * largest;
        for (double start : trees.init)
            total += std::abs(start);
        unit_ = std::exp2(std::floor(std::log2(std::exp2(28) / std::max(total, 1e-300))));
        if (is_exact())
            return;
        const double model_rounding = 2 * (n_trees + 2) * std::exp2(-53) * total * unit_;
        forest_.slack = static_cast<int32_t>(std::ceil((n_trees + 1) / 2 + model_rounding)) + 1;
    }

    /// Whether every value is a whole number of units: then sums are exact here and in the model, and no division
    /// by the number of trees can bring two different sums together.
    bool is_exact() const
    {
        const Trees& trees = forest_.trees;
        const auto whole = [this](double value) { return std::trunc(value * unit_) == value * unit_; };
        for (size_t node = 0; node < trees.test.size(); ++node)
            if (trees.test[node] == is_leaf)
                if (!std::all_of(trees.scores_of(node), trees.scores_of(node) + trees.n_scores(), whole))
                    return false;
        return std::all_of(trees.init.begin(), trees.init.end(), whole);
    }

    std::vector<int32_t> in_units(const double* scores)
    {
        forest_.lanes.margins(scores, margins_.data());
        std::vector<int32_t> out(n_lanes_);
        std::transform(margins_.begin(), margins_.end(), out.begin(),
                       [this](double margin) { return static_cast<int32_t>(std::lround(margin * unit_)); });
        return out;
    }

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
        const int32_t test = forest_.trees.test[node];
        return test < 0 ? Sides{test == always_left, test == always_right} : sides_of(forest_.lattice, box_, test);
    }

    int32_t add_simple(Simple node, const int32_t* low, const int32_t* high)
    {
        simple_.push_back(node);
        low_.insert(low_.end(), low, low + n_lanes_);
        high_.insert(high_.end(), high, high + n_lanes_);
        return static_cast<int32_t>(simple_.size()) - 1;
    }

    /// The subtree as seen from the box, without tests that do not split it.
    int32_t simplify(int32_t node)
    {
        const Trees& trees = forest_.trees;
        for (; trees.test[node] != is_leaf; )
        {
            const Sides sides = sides_at(node);
            if (sides.both())
                return simplify_split(node);
            node = sides.left ? trees.left[node] : trees.right[node];
        }
        const std::vector<int32_t> value = in_units(trees.scores_of(node));
        return add_simple({-1, -1, -1}, value.data(), value.data());
    }

    int32_t simplify_split(int32_t node)
    {
        const int32_t test = forest_.trees.test[node];
        const int32_t left = simplify_side(node, false), right = simplify_side(node, true);
        std::vector<int32_t> low(n_lanes_), high(n_lanes_);
        for (uint32_t lane = 0; lane < n_lanes_; ++lane)
        {
            low[lane] = std::min(low_[left * n_lanes_ + lane], low_[right * n_lanes_ + lane]);
            high[lane] = std::max(high_[left * n_lanes_ + lane], high_[right * n_lanes_ + lane]);
        }
        const bool same = simple_[left].test < 0 && simple_[right].test < 0 && low == high;
        return same ? left : add_simple({test, left, right}, low.data(), high.data());
    }

    int32_t simplify_side(int32_t node, bool right)
    {
        const Lattice& lattice = forest_.lattice;
        const uint32_t test = forest_.trees.test[node];
        const uint32_t axis = lattice.tests[test].axis;
        const std::vector<uint64_t> before(box_.begin() + lattice.word_start[axis],
                                           box_.begin() + lattice.word_start[axis + 1]);
        keep_side(lattice, box_, test, right);
        const int32_t side = simplify(right ? forest_.trees.right[node] : forest_.trees.left[node]);
        std::copy(before.begin(), before.end(), box_.begin() + lattice.word_start[axis]);
        return side;
    }

    /// Makes a piece of the subtree: breadth first, until it has 32 leaves; what is left below hangs on links.
    uint32_t cut_piece(int32_t top)
    {
        std::vector<int32_t> inside, waiting{top};
        size_t next = 0;
        for (; next < waiting.size() && inside.size() + 1 < piece_leaves; ++next)
        {
            const Simple& node = simple_[waiting[next]];
            inside.push_back(waiting[next]);
            for (int32_t child : {node.left, node.right})
                if (simple_[child].test >= 0)
                    waiting.push_back(child);
        }
        std::vector<int32_t> leaves;
        for (int32_t node : inside)
            for (int32_t child : {simple_[node].left, simple_[node].right})
                if (std::find(inside.begin(), inside.end(), child) == inside.end())
                    leaves.push_back(child);
        if (n_lanes_ == 1)
            std::stable_sort(leaves.begin(), leaves.end(), [this](int32_t a, int32_t b) { return high_[a] < high_[b]; });
        const uint32_t piece = static_cast<uint32_t>(forest_.n_pieces++);
        store_leaves(piece, leaves);
        forest_.inner.resize(forest_.n_pieces * (piece_leaves - 1));
        store_inner(piece, 0, inside, leaves);
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
        forest_.all_leaves.push_back(static_cast<uint32_t>((uint64_t{1} << leaves.size()) - 1));
        forest_.link.resize(first + piece_leaves, -1);
        forest_.most.resize((first + piece_leaves) * n_lanes_);
        forest_.least.resize((first + piece_leaves) * n_lanes_);
        for (size_t leaf = 0; leaf < leaves.size(); ++leaf)
            for (uint32_t lane = 0; lane < n_lanes_; ++lane)
            {
                forest_.most[(first + leaf) * n_lanes_ + lane] = high_[leaves[leaf] * n_lanes_ + lane];
                forest_.least[(first + leaf) * n_lanes_ + lane] = low_[leaves[leaf] * n_lanes_ + lane];
            }
        if (n_lanes_ == 1) // the lowest bit answers for the bits above it
            for (size_t leaf = leaves.size() - 1; leaf > 0; --leaf)
                forest_.least[first + leaf - 1] = std::min(forest_.least[first + leaf - 1], forest_.least[first + leaf]);
    }

    /// Stores the inner node at a place of `inside` and gives the leaves below it.
    uint32_t store_inner(uint32_t piece, size_t place, const std::vector<int32_t>& inside,
                         const std::vector<int32_t>& leaves)
    {
        Inner& inner = forest_.inner[piece * (piece_leaves - 1) + place];
        const Simple& node = simple_[inside[place]];
        inner.test = node.test;
        const auto below = [&](int32_t child, uint8_t& at) -> uint32_t
        {
            const auto found = std::find(inside.begin(), inside.end(), child);
            at = found == inside.end() ? no_inner : static_cast<uint8_t>(found - inside.begin());
            if (at != no_inner)
                return store_inner(piece, at, inside, leaves);
            return uint32_t{1} << (std::find(leaves.begin(), leaves.end(), child) - leaves.begin());
        };
        inner.left_leaves = below(node.left, inner.left);
        inner.right_leaves = below(node.right, inner.right);
        return inner.left_leaves | inner.right_leaves;
    }

    /// Every place of every test, test by test.
    std::vector<std::vector<Use>> uses() const
    {
        std::vector<std::vector<Use>> out(forest_.lattice.tests.size());
        for (uint32_t piece = 0; piece < forest_.n_pieces; ++piece)
        {
            const int n_inner = std::popcount(forest_.all_leaves[piece]) - 1;
            for (int place = 0; place < n_inner; ++place)
            {
                const Inner& inner = forest_.inner_of(piece)[place];
                out[inner.test].push_back({piece, inner.left_leaves, inner.right_leaves});
            }
        }
        return out;
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
        if (n_rows * forest_.n_pieces * sizeof(uint32_t) > most_row_bytes)
            return;
        forest_.has_rows = true;
        forest_.rows_.assign(n_rows * forest_.n_pieces, ~uint32_t{0});
        const auto places = uses();
        for (size_t axis = 0; axis < lattice.n_axes(); ++axis)
            lattice.is_ordered(axis) ? fill_ordered(axis, places) : fill_categorical(axis, places);
    }

    uint32_t* row(size_t index) { return &forest_.rows_[index * forest_.n_pieces]; }

    void fill_ordered(size_t axis, const std::vector<std::vector<Use>>& places)
    {
        const uint32_t first = forest_.lattice.first_test[axis], end = forest_.lattice.first_test[axis + 1];
        for (uint32_t test = first; test < end; ++test) // begins right of the test: left of it is gone
        {
            if (test > first)
                std::copy_n(row(2 * (test - 1) + 1), forest_.n_pieces, row(2 * test + 1));
            for (const Use& use : places[test])
                row(2 * test + 1)[use.piece] &= ~use.left_leaves;
        }
        for (uint32_t test = end; test-- > first;) // ends left of the test
        {
            if (test + 1 < end)
                std::copy_n(row(2 * (test + 1)), forest_.n_pieces, row(2 * test));
            for (const Use& use : places[test])
                row(2 * test)[use.piece] &= ~use.right_leaves;
        }
    }

    void fill_categorical(size_t axis, const std::vector<std::vector<Use>>& places)
    {
        const Lattice& lattice = forest_.lattice;
        for (uint32_t test = lattice.first_test[axis]; test < lattice.first_test[axis + 1]; ++test)
        {
            const auto& set = lattice.sets[lattice.tests[test].rank];
            for (uint32_t cell = 0; cell < lattice.n_cells[axis]; ++cell)
                for (const Use& use : places[test])
                    row(forest_.category_row_[axis] + cell)[use.piece] &=
                        set[cell / 64] >> (cell % 64) & 1 ? ~use.right_leaves : ~use.left_leaves;
        }
    }

    Forest& forest_;
    uint32_t n_lanes_;
    double unit_ = 1;
    std::vector<uint64_t> box_;
    std::vector<double> margins_;
    std::vector<Simple> simple_;
    std::vector<int32_t> low_, high_;
};

Forest::Forest(Lattice lattice_in, Trees trees_in)
    : lattice(std::move(lattice_in)), trees(std::move(trees_in)), lanes(static_cast<uint32_t>(trees.n_scores()))
{
    ForestBuilder(*this).build();
}

uint32_t Forest::reached(uint32_t piece, ConstBox box) const
{
    uint32_t leaves = all_leaves[piece];
    const int n_inner = std::popcount(leaves) - 1;
    for (const Inner* node = inner_of(piece); node < inner_of(piece) + n_inner; ++node)
    {
        const Sides sides = sides_of(lattice, box, node->test);
        leaves &= (sides.left ? ~0u : ~node->left_leaves) & (sides.right ? ~0u : ~node->right_leaves);
    }
    return leaves;
}
} // namespace cfmaps
