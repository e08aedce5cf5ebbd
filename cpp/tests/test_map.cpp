#undef NDEBUG

#include "cfmaps/explain.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <random>

namespace
{
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double powers[] = {1.0, 2.0, infinity};
constexpr uint32_t n_ordered = 3, n_values = 6, n_categories = 3, n_columns = n_ordered + n_categories;
constexpr size_t n_points = n_values * n_values * n_values * n_categories;

using Random = std::mt19937;

int draw(Random& random, int most)
{
    return std::uniform_int_distribution<int>(0, most)(random);
}

/// Whole numbers 0..5 on three axes, and a group of three columns.
cfmaps::Lattice small_lattice()
{
    cfmaps::Lattice lattice;
    for (uint32_t axis = 0; axis < n_ordered; ++axis)
    {
        lattice.n_cells.push_back(n_values);
        lattice.categorical.push_back(false);
        lattice.columns.push_back({axis});
        for (uint32_t value = 0; value < n_values; ++value)
        {
            lattice.low.push_back(value);
            lattice.high.push_back(value);
            if (value + 1 < n_values)
                lattice.tests.push_back({axis, value});
        }
    }
    lattice.n_cells.push_back(n_categories);
    lattice.categorical.push_back(true);
    lattice.columns.push_back({3, 4, 5});
    for (uint32_t category = 0; category < n_categories; ++category)
    {
        lattice.low.push_back(0);
        lattice.high.push_back(0);
        lattice.tests.push_back({n_ordered, category});
        lattice.sets.push_back({uint64_t{0b111} & ~(uint64_t{1} << category)});
    }
    lattice.finish();
    return lattice;
}

/// Trees whose leaves score quarters, so that classes tie.
struct Planter
{
    Random& random;
    cfmaps::Trees trees;

    int32_t plant(int depth, size_t n_classes)
    {
        const auto node = static_cast<int32_t>(trees.nodes.size());
        trees.nodes.push_back({0, -1, -1, -1, cfmaps::is_leaf});
        for (size_t score = 0; score < n_classes; ++score)
            trees.value.push_back(draw(random, 4) / 4.0);
        if (depth == 0 || draw(random, 5) == 0)
            return node;
        const int32_t column = draw(random, n_columns - 1), rank = draw(random, n_values - 2);
        const bool ordered = column < static_cast<int32_t>(n_ordered);
        const int32_t test = ordered ? column * static_cast<int32_t>(n_values - 1) + rank
                                     : static_cast<int32_t>(n_ordered * (n_values - 2)) + column;
        const int32_t left = plant(depth - 1, n_classes), right = plant(depth - 1, n_classes);
        trees.nodes[node] = {ordered ? rank + 0.5 : 0.5, column, left, right, test};
        return node;
    }
};

cfmaps::Trees random_trees(Random& random, size_t n_classes, int n_trees, int depth)
{
    Planter planter{random, {}};
    planter.trees.init.assign(n_classes, 0.0);
    planter.trees.divisor = n_trees;
    for (int tree = 0; tree < n_trees; ++tree)
        planter.trees.roots.push_back(planter.plant(depth, n_classes));
    return planter.trees;
}

std::vector<double> point(size_t index)
{
    std::vector<double> row(n_columns, 0.0);
    for (uint32_t axis = 0; axis < n_ordered; ++axis, index /= n_values)
        row[axis] = static_cast<double>(index % n_values);
    row[n_ordered + index] = 1;
    return row;
}

double distance(const std::vector<double>& from, const std::vector<double>& to, double power)
{
    double total = 0;
    for (size_t column = 0; column < from.size(); ++column)
    {
        const double gap = std::abs(from[column] - to[column]);
        total = power == infinity ? std::max(total, gap) : total + std::pow(gap, power);
    }
    return power == infinity ? total : std::pow(total, 1 / power);
}

cfmaps::Norm norm_of(double power)
{
    cfmaps::Norm norm{power, std::vector<double>(n_columns, 1.0), std::vector<std::vector<double>>(n_ordered + 1)};
    for (uint32_t from = 0; from < n_categories; ++from)
        for (uint32_t to = 0; to < n_categories; ++to)
            norm.category_costs[n_ordered].push_back(from == to ? 0 : power == infinity ? 1 : 2);
    return norm;
}

std::vector<double> expected_distances(const cfmaps::Trees& trees, size_t row, double power)
{
    std::vector<double> nearest(trees.n_scores(), infinity);
    for (size_t other = 0; other < n_points; ++other)
    {
        double& best = nearest[trees.label(point(other).data())];
        best = std::min(best, distance(point(row), point(other), power));
    }
    return nearest;
}

cfmaps::Answer ask(cfmaps::Explainer& explainer, const std::vector<double>& row, int32_t target)
{
    cfmaps::Limits limits;
    const cfmaps::Question question{row.data(), target};
    return explainer.ask({&question, 1}, infinity, 1, limits)[0];
}

void answers_are_the_nearest_points(size_t n_classes, int n_trees, int depth, unsigned seed)
{
    Random random(seed);
    cfmaps::Map map(small_lattice(), random_trees(random, n_classes, n_trees, depth), n_columns);
    for (double power : powers)
    {
        cfmaps::Explainer explainer(map, norm_of(power), norm_of(infinity));
        for (int query = 0; query < 12; ++query)
        {
            const size_t row = static_cast<size_t>(draw(random, n_points - 1));
            const auto expected = expected_distances(map.forest().trees, row, power);
            for (size_t target = 0; target < n_classes; ++target)
            {
                const auto found = ask(explainer, point(row), static_cast<int32_t>(target));
                assert(found.status ==
                       (expected[target] < infinity ? cfmaps::Status::optimal : cfmaps::Status::infeasible));
                assert(found.distance == expected[target] ||
                       std::abs(found.distance - expected[target]) < 1e-12 * expected[target]);
            }
        }
    }
}

void build(cfmaps::Map& map, unsigned n_threads)
{
    cfmaps::Limits limits;
    assert(map.build(limits, n_threads, [](double, size_t) {}));
}

void threads_ask_while_threads_build()
{
    Random random(7);
    const cfmaps::Trees trees = random_trees(random, 2, 30, 5);
    cfmaps::Map alone(small_lattice(), trees, n_columns), shared(small_lattice(), trees, n_columns);
    cfmaps::Explainer one(alone, norm_of(1), norm_of(infinity)), many(shared, norm_of(1), norm_of(infinity));
    std::vector<std::thread> threads;
    for (size_t first = 0; first < 4; ++first)
        threads.emplace_back(
            [&, first]
            {
                for (size_t row = first; row < n_points; row += 16)
                {
                    const auto found = ask(many, point(row), cfmaps::undecided);
                    assert(found.distance == ask(one, point(row), cfmaps::undecided).distance);
                }
            });
    threads.emplace_back([&] { build(shared, 2); });
    for (std::thread& thread : threads)
        thread.join();
    build(alone, 1);
    assert(alone.census().n_leaves == shared.census().n_leaves);
}

void a_budget_of_splits_is_kept()
{
    Random random(8);
    cfmaps::Map map(small_lattice(), random_trees(random, 3, 20, 5), n_columns);
    cfmaps::Limits limits;
    limits.allow_splits(10);
    assert(!map.build(limits, 2, [](double, size_t) {}));
    assert(limits.reason() == cfmaps::Stop::nodes && map.census().n_nodes <= 21);
    build(map, 2);
    assert(map.census().n_open == 0);
}
}  // namespace

int main()
{
    for (unsigned seed = 0; seed < 20; ++seed)
        for (size_t n_classes : {2, 3, 10})
            answers_are_the_nearest_points(n_classes, 1 + static_cast<int>(seed % 8), 1 + static_cast<int>(seed % 7),
                                           seed);
    threads_ask_while_threads_build();
    a_budget_of_splits_is_kept();
}
