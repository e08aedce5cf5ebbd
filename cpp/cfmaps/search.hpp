#pragma once
// The nearest wanted point. One search over one structure: it walks the map where the map is decided, and where it is
// open it goes on in boxes of its own, shrunk to what the query can still afford.

#include "costs.hpp"
#include "limits.hpp"
#include "narrow.hpp"
#include "nodes.hpp"

#include <deque>
#include <memory>

namespace cfmaps
{
enum class Status : int8_t
{
    optimal,
    feasible,    // stopped early with an answer; the bound is certified
    infeasible,  // no wanted point exists
    unknown,     // stopped early without an answer; the bound is certified
};

/// A point, by the costs and cells of its axes. Answers are ordered by total cost, then by costs and steps, axis by
/// axis: so the answer to a query is one point, whatever the map has grown and whichever thread asks.
struct Candidate
{
    bool found = false;
    double total = 0;
    int32_t label = undecided;  // unless only "not the row's own" is known
    std::vector<double> costs = {};
    std::vector<uint32_t> cells = {};
};

struct Answer
{
    Status status = Status::unknown;
    double distance = 0, lower_bound = 0;
    int32_t source = undecided, label = undecided;  // classes of the row and of the answer
    std::vector<uint32_t> cells;                    // of the answer; empty when it is the row itself, or none
    size_t visited = 0;                             // nodes of the map
    size_t evaluated = 0;                           // boxes of the search's own
};

class Search
{
public:
    Search(const Forest& forest, const Nodes& nodes, const Norm& norm, const Norm& maximum);

    /// The nearest point of a class to a row on the model's grid; of any class but the row's own for `undecided`.
    Answer nearest(const double* row, int32_t target, Clock::time_point deadline, Limits& limits);

    Costs& costs() { return costs_; }
    /// The sums a walk from the query's home starts with.
    Total home_total() const;
    const Candidate& best() const { return best_; }

private:
    /// A child of the map still to be visited, and where the way to it leaves the present one.
    struct Waiting
    {
        uint32_t id, test, cell;
        bool right;
        size_t trail;
    };
    /// What a step changed: the cell of an axis, or a word of its categories.
    struct Step
    {
        uint32_t axis, cell;
        size_t word;
        uint64_t before;
    };
    static constexpr size_t no_word = static_cast<size_t>(-1);
    struct Frame
    {
        std::vector<uint64_t> box;
        State state;
    };
    /// A child of the map still to be visited, what its points cost at least, and where the way to it is kept.
    struct Branch
    {
        double total;
        uint32_t id, place;
    };
    struct Stopped
    {
    };

    uint32_t label_of(const double* row) const;
    void want(int32_t target, uint32_t source);
    bool find_unit(const double* row, Answer& answer);
    void deepen(Answer& answer);
    Candidate dive();
    void start_walk();
    void search_outwards(Candidate& incumbent, double& proven);
    double first_radius_in_reach(double& proven);
    bool may_hold_within(double cap);
    void go_home();
    double smallest_step() const;
    double largest_total() const;

    bool walk_best_first(double& proven);
    bool follow(uint32_t id);
    bool add_branch(uint32_t id, uint32_t test, bool right);
    bool next_branch(Branch& branch);
    uint32_t keep_way();
    void stand_at(uint32_t place);

    void pass(const Candidate& bound);
    void walk_down(uint32_t id);
    bool goes_right(const Test& test, uint32_t cell) const
    {
        return test.ordered ? cell > test.rank : !(lattice_.sets[test.rank][cell / 64] >> (cell % 64) & 1);
    }
    uint32_t far_cell(uint32_t test, bool right) const;
    void wait_for_far(uint32_t id, uint32_t test, bool right, uint32_t children);
    bool next_waiting(uint32_t& id);
    void move(uint32_t axis, uint32_t cell);
    void take_step(uint32_t test, bool right);
    void undo_to(size_t trail);
    /// Whether a box may hold a better answer: `cell` is the box's nearest on one axis, the way's on the others.
    bool may_win(double total, uint32_t axis, uint32_t cell) const
    {
        return total < best_.total ||
               (total == best_.total && (!best_.found || may_win_tie(cells_.data(), axis, cell)));
    }
    bool may_win_tie(const uint32_t* cells, uint32_t axis, uint32_t cell) const;
    void offer(int32_t label);
    void tick()
    {
        if (++ticks_ % 64 == 0)
            look_up();
    }
    void look_up();

    Candidate any_answer();
    bool descend_to_wanted(std::vector<uint64_t>& box);
    void pull_home();
    bool pull_home(uint32_t axis);
    bool is_wanted_here();

    void enter_open(uint32_t open_id);
    void explore(size_t depth);
    void explore_side(uint32_t test, bool right, size_t depth);
    int32_t cut_of_tie(ConstBox box);
    void shrink(BoxSpan box);
    void shrink_ordered(BoxSpan box, size_t axis, double most);
    void shrink_categorical(BoxSpan box, size_t axis, double most);
    Frame& frame(size_t depth);

    const Forest& forest_;
    const Lattice& lattice_;
    const size_t n_columns_;
    const Nodes& nodes_;
    const Norm& norm_;
    Costs costs_;
    Total total_;
    Narrower narrower_;
    std::unique_ptr<Search> scout_;  // the maximum norm, whose optimum is the unit in which other powers are taken

    const double* row_ = nullptr;
    Wanted wanted_{0};
    uint8_t wanted_bits_ = 0;
    Limits* limits_ = nullptr;
    Clock::time_point deadline_;
    bool is_diving_ = false;
    Candidate best_;
    std::vector<uint32_t> cells_;  // where the way stands: the nearest cell of each axis
    std::vector<uint64_t> words_;  // and, for categorical axes, the cells left
    std::vector<Waiting> waiting_;
    std::vector<Step> trail_;
    std::vector<Branch> branches_;  // a heap, the nearest first
    std::vector<uint32_t> ways_;    // of the branches: cells, place after place
    std::vector<uint64_t> way_words_;
    std::vector<uint32_t> free_places_;
    uint32_t n_places_ = 0;
    std::deque<Frame> frames_;
    size_t visited_ = 0, evaluated_ = 0, ticks_ = 0;
};
}  // namespace cfmaps
