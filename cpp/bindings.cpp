#include "bindings.hpp"

#include "cfmaps/box_tree.hpp"

using namespace bindings;

namespace
{
/// Lets Ctrl-C stop long work. Asks ten times a second, as every question waits for the interpreter.
class Interrupt
{
public:
    void operator()()
    {
        const auto now = std::chrono::steady_clock::now();
        if (now < next_)
            return;
        next_ = now + period;
        const nb::gil_scoped_acquire python;
        if (PyErr_CheckSignals() != 0)
            throw nb::python_error();
    }

private:
    static constexpr std::chrono::milliseconds period{100};
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + period;
};

// BoxTree

using NearestArrays = std::tuple<Result<std::int64_t, 1>, Result<double, 1>, Result<double, 2>, Result<std::int64_t, 1>,
                                 Result<double, 1>>;

void make_box_tree(cfmaps::BoxTree* self, const Matrix& lower, const Matrix& upper, std::size_t leaf_size)
{
    if (lower.shape(0) != upper.shape(0) || lower.shape(1) != upper.shape(1))
        throw std::invalid_argument("lower and upper must have the same shape");
    if (lower.shape(1) == 0 || leaf_size == 0)
        throw std::invalid_argument("lower needs a column, and leaf_size must be at least 1");
    if (lower.shape(0) > cfmaps::BoxTree::most_boxes)
        throw std::invalid_argument("lower has too many rows: a tree holds up to 2**31 boxes");
    const nb::gil_scoped_release no_python;
    new (self) cfmaps::BoxTree(lower.shape(1), span(lower), span(upper), leaf_size, Interrupt());
}

NearestArrays nearest_boxes(const cfmaps::BoxTree& tree, const Matrix& X, const Vector& weights, double p)
{
    if (X.shape(1) != tree.n_features() || weights.size() != tree.n_features())
        throw std::invalid_argument("X and weights must have one column per feature of the boxes");
    if (!(p >= 1.0))
        throw std::invalid_argument("p must be at least 1");
    const std::size_t n_rows = X.shape(0);
    auto found = [&]
    {
        const nb::gil_scoped_release no_python;
        return tree.nearest(span(X), span(weights), p, Interrupt());
    }();
    return {hand_over(std::move(found.index), {n_rows}), hand_over(std::move(found.distance), {n_rows}),
            hand_over(std::move(found.point), {n_rows, tree.n_features()}),
            hand_over(std::move(found.visited), {n_rows}), hand_over(std::move(found.bound), {n_rows})};
}

void bind_box_tree(nb::module_& m)
{
    using cfmaps::BoxTree;
    nb::class_<BoxTree>(m, "BoxTree")
        .def("__init__", &make_box_tree, nb::arg("lower"), nb::arg("upper"), nb::arg("leaf_size"))
        .def("nearest", &nearest_boxes, nb::arg("X"), nb::arg("weights"), nb::arg("p"))
        .def_prop_ro("n_features", &BoxTree::n_features)
        .def_prop_ro("n_boxes", &BoxTree::n_boxes)
        .def_prop_ro("n_nodes", &BoxTree::n_nodes)
        .def_prop_ro("n_bytes", &BoxTree::n_bytes);
}

// Map and Explainer

cfmaps::Lattice make_lattice(const Integers& n_cells, const Flags& categorical, const Vector& low, const Vector& high,
                             const std::vector<Integers>& columns, const Integers& test_axis, const Integers& test_rank,
                             const FlagMatrix& test_sets)
{
    cfmaps::Lattice lattice;
    lattice.n_cells = copy<std::uint32_t>(n_cells);
    lattice.categorical = copy<std::uint8_t>(categorical);
    lattice.low = copy<double>(low);
    lattice.high = copy<double>(high);
    for (const Integers& axis : columns)
        lattice.columns.push_back(copy<std::uint32_t>(axis));
    for (std::size_t test = 0; test < test_axis.size(); ++test)
        lattice.tests.push_back(
            {static_cast<std::uint32_t>(test_axis(test)), static_cast<std::uint32_t>(test_rank(test))});
    for (std::size_t row = 0; row < test_sets.shape(0); ++row)
    {
        std::vector<std::uint64_t>& set = lattice.sets.emplace_back((test_sets.shape(1) + 63) / 64);
        for (std::size_t cell = 0; cell < test_sets.shape(1); ++cell)
            set[cell / 64] |= static_cast<std::uint64_t>(test_sets(row, cell)) << (cell % 64);
    }
    lattice.finish();
    return lattice;
}

cfmaps::Rule rule_of(const std::string& name)
{
    if (name == "argmax")
        return cfmaps::Rule::argmax;
    return name.starts_with("softmax") ? cfmaps::Rule::softmax : cfmaps::Rule::bands;
}

cfmaps::Trees make_trees(const Integers& test, const Integers& feature, const Vector& threshold, const Integers& left,
                         const Integers& right, const Integers& roots, const Matrix& value, const Vector& init,
                         double divisor, bool single, const std::string& rule, bool single_sums, double scale,
                         const Vector& bias, const Vector& cuts, const Flags& missing_left,
                         const Integers& category_set, const FlagMatrix& category_sets)
{
    if (value.shape(0) != test.size() || value.shape(1) != init.size())
        throw std::invalid_argument("value must have a row per node and a column per score");
    cfmaps::Trees trees{{}, copy<std::int32_t>(roots), copy<double>(value), copy<double>(init), divisor, single};
    for (std::size_t node = 0; node < test.size(); ++node)
        trees.nodes.push_back({threshold(node), feature(node), left(node), right(node), test(node)});
    trees.rule = rule_of(rule);
    trees.single_sums = single_sums;
    trees.single_softmax = rule == "softmax32";
    trees.scale = scale;
    trees.bias = copy<double>(bias);
    trees.cuts = copy<double>(cuts);
    trees.cut_sums();
    trees.routes = {copy<std::uint8_t>(missing_left), copy<std::int32_t>(category_set), {}};
    for (std::size_t set = 0; set < category_sets.shape(0); ++set)
    {
        const bool* first = category_sets.data() + set * category_sets.shape(1);
        trees.routes.codes.emplace_back(first, first + category_sets.shape(1));
    }
    return trees;
}

Result<std::int64_t, 1> softmax_labels(const Matrix& scores, bool single)
{
    std::vector<std::int64_t> labels(scores.shape(0));
    const std::size_t n_scores = scores.shape(1);
    for (std::size_t row = 0; row < labels.size(); ++row)
        labels[row] = cfmaps::softmax_label(scores.data() + row * n_scores, n_scores, single);
    const std::size_t n_rows = labels.size();
    return hand_over(std::move(labels), {n_rows});
}

/// Whether the map is whole now, and if not, which limit was met: "nodes", "memory", "time", or none of them.
std::tuple<bool, std::string> build_map(cfmaps::Map& map, std::size_t most_splits, std::size_t most_bytes,
                                        double time_limit, unsigned n_threads, nb::object progress)
{
    Poll poll{std::move(progress)};
    cfmaps::Limits limits;
    limits.allow_splits(most_splits);
    limits.most_bytes = most_bytes;
    limits.deadline = cfmaps::after(time_limit);
    const bool complete = [&]
    {
        const nb::gil_scoped_release no_python;
        return map.build(limits, n_threads,
                         [&](double share, std::size_t n_nodes)
                         {
                             if (poll.ask(share, n_nodes))
                                 limits.stop();
                         });
    }();
    poll.raise_if_failed();
    static constexpr const char* names[] = {"", "", "nodes", "memory", "time"};
    return {complete, names[static_cast<int>(limits.reason())]};
}

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Words = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

auto page_digests(const Bytes& data)
{
    std::vector<std::uint8_t> digests = [&]
    {
        const nb::gil_scoped_release no_python;
        return cfmaps::page_digests({data.data(), data.size()});
    }();
    const std::size_t size = digests.size();
    return hand_over(std::move(digests), {size});
}

auto pack_map(cfmaps::Map& map)
{
    std::vector<std::uint64_t> words = [&]
    {
        const nb::gil_scoped_release no_python;
        return map.pack();
    }();
    const std::size_t size = words.size();
    return hand_over(std::move(words), {size});
}

/// The arrays stay borrowed as long as the map lives.
void restore_map(cfmaps::Map* self, const cfmaps::Lattice& lattice, const cfmaps::Trees& trees, std::size_t n_columns,
                 const Words& words, const Bytes& digests, const Bytes& roots, bool is_complete)
{
    auto stored = std::make_unique<cfmaps::StoredNodes>(std::span(words.data(), words.size()),
                                                        std::span(digests.data(), digests.size()),
                                                        std::span(roots.data(), roots.size()));
    const nb::gil_scoped_release no_python;
    new (self) cfmaps::Map(lattice, trees, n_columns, std::move(stored), is_complete);
}

std::tuple<std::size_t, std::size_t, std::size_t> count_map(const cfmaps::Map& map)
{
    const nb::gil_scoped_release no_python;
    const cfmaps::Census census = map.census();
    return {census.n_nodes, census.n_leaves, census.n_open};
}

auto boxes_of_map(const cfmaps::Map& map, std::int32_t label, bool single_categories)
{
    cfmaps::Boxes boxes = [&]
    {
        const nb::gil_scoped_release no_python;
        return map.boxes(label, single_categories);
    }();
    const std::size_t n_boxes = boxes.label.size();
    return std::tuple{hand_over(std::move(boxes.lower), {n_boxes, map.n_columns()}),
                      hand_over(std::move(boxes.upper), {n_boxes, map.n_columns()}),
                      hand_over(std::move(boxes.label), {n_boxes})};
}

cfmaps::BoxTree box_tree_of_map(const cfmaps::Map& map, std::int32_t label, std::size_t leaf_size)
{
    if (label < 0 || leaf_size == 0)
        throw std::invalid_argument("label must be an index of a class, and leaf_size must be at least 1");
    const nb::gil_scoped_release no_python;
    return map.box_tree(label, leaf_size, Interrupt());
}

auto region_of_map(const cfmaps::Map& map, const Integers& cells)
{
    if (cells.size() != map.forest().lattice.n_axes())
        throw std::invalid_argument("cells must have one entry per axis");
    std::vector<double> lower(map.n_columns()), upper(map.n_columns());
    map.bounds_of(map.region(copy<std::uint32_t>(cells)), lower.data(), upper.data());
    return std::tuple{hand_over(std::move(lower), {map.n_columns()}), hand_over(std::move(upper), {map.n_columns()})};
}

void make_explainer(cfmaps::Explainer* self, cfmaps::Map& map, double power, const Vector& weights,
                    const std::vector<Matrix>& category_costs, const std::vector<Matrix>& largest_category_costs)
{
    if (weights.size() != map.n_columns())
        throw std::invalid_argument("weights must have one entry per column");
    new (self) cfmaps::Explainer(map, make_norm(power, weights, category_costs),
                                 make_norm(std::numeric_limits<double>::infinity(), weights, largest_category_costs));
}

Replies ask(cfmaps::Explainer& explainer, const Matrix& rows, const Integers& targets, double time_limit,
            unsigned n_threads)
{
    const std::size_t n_rows = rows.shape(0), n_columns = explainer.map().n_columns();
    if (rows.shape(1) != n_columns || targets.size() != n_rows)
        throw std::invalid_argument("rows must have a column per column of the model, targets an entry per row");
    const cfmaps::Lattice& lattice = explainer.map().forest().lattice;
    Replies replies(rows, lattice.n_axes());
    Poll poll{nb::none()};
    {
        const nb::gil_scoped_release no_python;
        std::vector<cfmaps::Question> questions(n_rows);
        for (std::size_t row = 0; row < n_rows; ++row)
            questions[row] = {rows.data() + row * n_columns, targets.data()[row]};
        cfmaps::Limits limits;
        limits.poll = [&] { return poll.ask(0, 0); };
        const auto answers = explainer.ask(questions, time_limit, n_threads, limits);
        for (std::size_t row = 0; row < n_rows; ++row)
            replies.set(row, answers[row], lattice);
    }
    poll.raise_if_failed();
    return replies;
}

/// An array over memory that the Python object of the replies owns and nobody writes to.
template <class T>
auto view(nb::handle owner, std::vector<T> Replies::* values, std::size_t Replies::* n_columns)
{
    Replies& replies = nb::cast<Replies&>(owner);
    return Result<const T, 2>((replies.*values).data(), {replies.n_rows, replies.*n_columns}, owner);
}

/// The same for what stands row after row of one entry per question.
template <class T>
auto rows_of(nb::handle owner, std::vector<T> Replies::* values)
{
    Replies& replies = nb::cast<Replies&>(owner);
    const std::size_t n_rows = replies.n_rows;
    return Result<const T, 2>((replies.*values).data(), {n_rows > 0 ? (replies.*values).size() / n_rows : 3, n_rows},
                              owner);
}

void bind_replies(nb::module_& m)
{
    nb::class_<Replies>(m, "Replies")
        .def("__len__", [](const Replies& replies) { return replies.n_rows; })
        .def_prop_ro("points", [](nb::handle self) { return view(self, &Replies::points, &Replies::n_columns); })
        .def_prop_ro("cells", [](nb::handle self) { return view(self, &Replies::cells, &Replies::n_axes); })
        .def_prop_ro("numbers", [](nb::handle self) { return rows_of(self, &Replies::numbers); })
        .def_prop_ro("codes", [](nb::handle self) { return rows_of(self, &Replies::codes); })
        .def_prop_ro("work", [](nb::handle self) { return rows_of(self, &Replies::work); });
}

void bind_map(nb::module_& m)
{
    using cfmaps::Explainer;
    using cfmaps::Lattice;
    using cfmaps::Map;
    using cfmaps::Trees;
    nb::class_<Lattice>(m, "Lattice")
        .def(nb::new_(
                 [](const Integers& n_cells, const Flags& categorical, const Vector& low, const Vector& high,
                    const std::vector<Integers>& columns, const Integers& test_axis, const Integers& test_rank,
                    const FlagMatrix& test_sets)
                 { return make_lattice(n_cells, categorical, low, high, columns, test_axis, test_rank, test_sets); }),
             nb::arg("n_cells"), nb::arg("categorical"), nb::arg("low"), nb::arg("high"), nb::arg("columns"),
             nb::arg("test_axis"), nb::arg("test_rank"), nb::arg("test_sets"));
    nb::class_<Trees>(m, "Trees")
        .def(nb::new_(&make_trees), nb::arg("test"), nb::arg("feature"), nb::arg("threshold"), nb::arg("left"),
             nb::arg("right"), nb::arg("roots"), nb::arg("value"), nb::arg("init"), nb::arg("divisor"),
             nb::arg("single"), nb::arg("rule"), nb::arg("single_sums"), nb::arg("scale"), nb::arg("bias"),
             nb::arg("cuts"), nb::arg("missing_left"), nb::arg("category_set"), nb::arg("category_sets"));
    m.def("softmax_labels", &softmax_labels, nb::arg("scores"), nb::arg("single"));
    nb::exception<cfmaps::CorruptMap>(m, "CorruptMap", PyExc_ValueError);
    m.def("page_digests", &page_digests, nb::arg("data"));
    m.attr("page_bytes") = cfmaps::page_bytes;
    nb::class_<Map>(m, "Map")
        .def(nb::init<Lattice, Trees, std::size_t>(), nb::arg("lattice"), nb::arg("trees"), nb::arg("n_columns"))
        .def("__init__", &restore_map, nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>(),
             nb::arg("lattice"), nb::arg("trees"), nb::arg("n_columns"), nb::arg("words").noconvert(),
             nb::arg("digests").noconvert(), nb::arg("roots").noconvert(), nb::arg("is_complete"))
        .def("pack", &pack_map)
        .def("build", &build_map, nb::arg("most_splits"), nb::arg("most_bytes"), nb::arg("time_limit"),
             nb::arg("n_threads"), nb::arg("progress").none())
        .def("count", &count_map)
        .def("boxes", &boxes_of_map, nb::arg("label"), nb::arg("single_categories"))
        .def("box_tree", &box_tree_of_map, nb::arg("label"), nb::arg("leaf_size"))
        .def("region", &region_of_map, nb::arg("cells"))
        .def_prop_ro("is_complete", &Map::is_complete)
        .def_prop_ro("n_bytes", [](const Map& map) { return map.nodes().n_bytes(); })
        .def_prop_rw(
            "most_nodes", [](const Map& map) { return map.most_nodes.load(); },
            [](Map& map, std::size_t most) { map.most_nodes = most; });
    nb::class_<Explainer>(m, "Explainer")
        .def("__init__", &make_explainer, nb::keep_alive<1, 2>(), nb::arg("map"), nb::arg("power"), nb::arg("weights"),
             nb::arg("category_costs"), nb::arg("largest_category_costs"))
        .def("ask", &ask, nb::arg("rows"), nb::arg("targets"), nb::arg("time_limit"), nb::arg("n_threads"));
}

}  // namespace

NB_MODULE(_core, m)
{
    m.doc() = "The C++ core of cfmaps: arrays in, arrays out.";
    bind_box_tree(m);
    bind_replies(m);
    bind_map(m);
    bindings::bind_advisor(m);
}
