#pragma once
// The nearest wanted point that keeps rules: the same walk over map and open boxes as Search, over the slots that the
// rules leave to one row. What is wanted of further forests (plausibility) is decided in the same boxes.

#include "costs.hpp"
#include "limits.hpp"
#include "map.hpp"
#include "relation.hpp"
#include "rules.hpp"
#include "search.hpp"

#include <deque>
#include <memory>

namespace cfmaps
{
/// A forest over the same axes that has to say a class of its own.
struct Demand
{
    const Forest* forest;
    Wanted wanted;
};

/// A row, the class it asks for, and its part of the rules.
struct Plea
{
    const double* row;
    int32_t target;
    RowRules rules;
    bool keeps_rules;  // the row itself does: then it is the answer if it has the class already
};

/// A point by its values, axis by axis; the value of a categorical axis is its cell.
struct Finding
{
    bool found = false;
    double total = 0;
    std::vector<double> costs = {}, values = {};
};

struct Outcome
{
    Status status = Status::unknown;
    double distance = 0, lower_bound = 0;
    int32_t source = undecided;
    bool is_itself = false;
    std::vector<double> values;  // empty when there is none, or the row itself
    size_t visited = 0, evaluated = 0;
};

/// What a collecting search leaves: all irreducible points within a radius.
struct Harvest
{
    std::vector<Finding> findings;
    bool is_complete = false;
};

class Recourse
{
public:
    Recourse(const Map& map, std::vector<Demand> demands, const Rules& rules, const Norm& norm, const Norm& maximum);

    Outcome nearest(const Plea& plea, Clock::time_point deadline, Limits& limits);

    /// All points that are no farther than a distance and of which no part can be taken back; at most so many.
    Harvest within(const Plea& plea, double distance, size_t most, Clock::time_point deadline, Limits& limits);

    /// The values of the slots of one axis for a row, for callers that price them.
    std::vector<double> values(const double* row, const RowRules& of_row, size_t axis);

private:
    /// The slots left of an axis, the cheapest of them, and the numbers left where relations are solved.
    struct Range
    {
        uint32_t lo, hi, near;
        double low, high;
        bool may_change;  // counted as a change already
    };
    struct Step
    {
        uint32_t axis;
        Range range;
        size_t word;
        uint64_t before;
    };
    static constexpr size_t no_word = static_cast<size_t>(-1);
    struct Frame
    {
        std::vector<std::vector<uint64_t>> box;  // per forest
        std::vector<State> state;
        uint32_t settled = 0;  // a bit for each forest that says what is wanted all over the box
    };
    struct Stopped
    {
    };
    struct Enough
    {
    };

    // The question.
    bool ask(const Plea& plea, Outcome& outcome);
    bool find_unit(const Plea& plea, Outcome& outcome);
    void price(double unit);
    void price_axis(size_t axis, size_t& table);
    double raised_gap(size_t axis, double z) const;
    double raised(double distance) const { return norm_.raise(distance / unit_); }
    double root(double total) const { return unit_ * norm_.root(total); }
    double cost_of(size_t axis, double value) const;

    // Passes.
    void deepen(Outcome& outcome);
    void grow_balls(double& proven);
    bool dive();
    double first_radius_in_reach(double& proven);
    bool may_hold_within(double cap);
    bool go_home();
    void pass(const Finding& bound);
    double smallest_step() const;
    double largest_total() const;

    // The map.
    void walk(uint32_t id);
    void walk_side(const Node& node, bool right);
    bool take_side(size_t forest, uint32_t test, bool right);

    // Open boxes.
    void enter_open(uint32_t settled);
    void explore(size_t depth);
    bool decide(Frame& frame);
    int32_t cut_of(Frame& frame, size_t forest);
    void explore_side(size_t forest, uint32_t test, bool right, size_t depth);
    void narrow(const Frame& from, Frame& to);
    void write_box(size_t forest, std::vector<uint64_t>& box) const;
    void shrink();
    void shrink_axis(uint32_t axis, double most);
    void keep_as_is(uint32_t axis);
    Frame& frame(size_t depth);

    // Ranges.
    bool is_ordered(size_t axis) const { return lattice_.is_ordered(axis); }
    bool keep_range(uint32_t axis, uint32_t lo, uint32_t hi);
    bool keep_numbers(uint32_t axis, double low, double high);
    bool keep_value(uint32_t axis, bool as_is);
    template <class Mask>
    bool keep_categories(uint32_t axis, Mask mask);
    bool keep_category(uint32_t axis, uint32_t category);
    bool place(uint32_t axis, uint32_t near);
    void save(uint32_t axis) { trail_.push_back({axis, ranges_[axis], no_word, 0}); }
    void undo_to(size_t trail);
    uint32_t cheapest_category(uint32_t axis) const;
    bool has_category(uint32_t axis, uint32_t category) const
    {
        return words_[first_word_[axis] + category / 64] >> (category % 64) & 1;
    }
    bool may_change_only(uint32_t axis) const;
    bool may_win() const
    {
        return total_.value() < best_.total ||
               (total_.value() == best_.total && (!best_.found || is_before(total_.costs(), {})));
    }
    bool is_before(std::span<const double> costs, std::span<const double> values) const;

    // Rules.
    struct Truth
    {
        bool possible, certain;
    };
    Truth truth(uint32_t condition) const;
    bool is_true(uint32_t condition, uint32_t slot) const;
    bool clauses_possible(uint32_t axis) const;
    bool relations_possible(uint32_t axis) const;
    double least_of(const Relation& relation) const;

    // Margins.
    bool branch_on_reach(const std::vector<double>& values);
    bool has_unwanted(size_t depth);
    void leave_reach(ConstBox unwanted);

    // Boxes that hold nothing unwanted.
    void settle();
    int32_t broken_clause(const std::vector<double>& values) const;
    bool keeps_relations(const std::vector<double>& values) const;
    void branch_on_clause(uint32_t clause);
    bool branch_on_categories();
    void solve_relations();
    bool set_up_projection();
    bool branch_on_changes(const std::vector<double>& values);
    bool branch_on_numbers(const std::vector<double>& values);
    bool round(std::vector<double>& values) const;
    void offer(const std::vector<double>& values);
    void offer_near();
    void collect(Finding finding);
    bool reduces(const Finding& less, const Finding& more) const;

    void tick()
    {
        if (++ticks_ % 64 == 0 && limits_->check(deadline_))
            throw Stopped{};
        if (is_diving_ && ticks_ > dive_ends_)
            throw Enough{};
    }

    const Map& map_;
    const Forest& forest_;
    const Lattice& lattice_;
    const Nodes& nodes_;
    const Rules& rules_;
    const Norm& norm_;
    const std::vector<Demand> demands_;  // beyond the map's own
    Slotting slotting_;
    std::deque<Narrower> narrower_;  // per forest
    std::unique_ptr<Recourse> scout_;

    const Plea* plea_ = nullptr;
    std::vector<Slots> slots_;
    double unit_ = 1;
    Total total_;
    Wanted wanted_{0};
    uint8_t wanted_bits_ = 0;
    Limits* limits_ = nullptr;
    Clock::time_point deadline_;

    Finding best_;
    bool is_diving_ = false, is_collecting_ = false;
    size_t dive_ends_ = 0;
    size_t most_findings_ = 0;
    std::vector<Finding> findings_;
    double least_bound_ = 0;     // of all boxes in which an answer was rounded to the grid
    double unsolved_bound_ = 0;  // of all boxes whose relations could not be solved
    std::vector<Range> ranges_;
    std::vector<uint32_t> first_word_;  // per axis, of the categories left
    std::vector<uint64_t> words_;
    size_t changed_ = 0;
    std::vector<Step> trail_;
    std::deque<Frame> frames_;
    std::deque<Frame> reach_frames_;

    Projection projection_;
    std::vector<uint32_t> related_;  // axes of the projection
    std::vector<Variable> variables_;
    std::vector<Inequality> inequalities_;
    double other_costs_ = 0;
    size_t visited_ = 0, evaluated_ = 0, ticks_ = 0;
};

/// Keeps the categories in a mask that comes word by word.
template <class Mask>
bool Recourse::keep_categories(uint32_t axis, Mask mask)
{
    const size_t n_words = slots_[axis].allowed.size();
    bool any = false;
    for (size_t word = 0; word < n_words; ++word)
    {
        uint64_t& left = words_[first_word_[axis] + word];
        trail_.push_back({axis, ranges_[axis], first_word_[axis] + word, left});
        left &= mask(word);
        any |= left != 0;
    }
    return any && place(axis, cheapest_category(axis));
}
}  // namespace cfmaps
