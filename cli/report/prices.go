package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/simulate"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

// hoursPerMonth is a twelfth of a year of 365 days.
const hoursPerMonth = 730

// Prices say what a node costs per hour, in any currency. Exactly one field is set.
type Prices struct {
	// All is the price of every node.
	All float64
	// Label is the key of a node label that holds it.
	Label string
	// ByType: instance type -> price.
	ByType map[string]float64
}

// PriceSummary says for which nodes there were prices.
type PriceSummary struct {
	// Rule says where prices come from.
	Rule string `json:"rule"`
	// HoursPerMonth is what a month is taken for.
	HoursPerMonth int `json:"hoursPerMonth"`
	// Unpriced are the GPU nodes without a price, sorted. They count as free of charge.
	Unpriced []string `json:"unpriced,omitempty"`
}

// Money is what nodes cost per month.
type Money struct {
	// Empty is that of nodes without GPU pods, Removable that of those which an
	// autoscaler could remove.
	Empty     float64 `json:"empty"`
	Removable float64 `json:"removable"`
}

// ParsePrice reads a price: a number of at least 0.
func ParsePrice(text string) (float64, error) {
	price, err := strconv.ParseFloat(text, 64)
	if err != nil || price < 0 || math.IsNaN(price) || price > 1e9 {
		return 0, fmt.Errorf("%q is no price; write a number such as 12.5", text)
	}
	return price, nil
}

// LoadPrices reads a CSV file with the columns instance_type and price_per_hour.
func LoadPrices(path string) (*Prices, error) {
	p := &Prices{ByType: map[string]float64{}}
	_, err := readTable(path, [][]string{{"instance_type"}, {"price_per_hour"}}, func(t *table) {
		name, column := t.text("instance_type")
		if name == "" {
			t.fail(column, "must not be empty")
		}
		if _, twice := p.ByType[name]; twice {
			t.fail(column, "%q is there twice; keep one price", name)
		}
		text, column := t.text("price_per_hour")
		price, err := ParsePrice(text)
		if err != nil {
			t.fail(column, "%v", err)
		}
		p.ByType[name] = price
	})
	if err == nil && len(p.ByType) == 0 {
		err = errors.New(path + ": has no prices; write one line for each instance type after the first")
	}
	return p, err
}

func (p *Prices) rule() string {
	switch {
	case p.ByType != nil:
		return "by instance type"
	case p.Label != "":
		return "by node label " + p.Label
	}
	return fmt.Sprintf("%s per node and hour", strconv.FormatFloat(p.All, 'f', -1, 64))
}

// of returns the price of a node, and whether it has one.
func (p *Prices) of(n *corev1.Node) (float64, bool) {
	switch {
	case p.ByType != nil:
		price, ok := p.ByType[n.Labels[corev1.LabelInstanceTypeStable]]
		return price, ok
	case p.Label != "":
		price, err := ParsePrice(n.Labels[p.Label])
		return price, err == nil
	}
	return p.All, true
}

// addMoney adds what the nodes of each scenario cost.
func (r *Report) addMoney(s *state.State, p *Prices) {
	prices := map[string]float64{}
	unpriced := map[string]bool{}
	for i := range s.Nodes {
		if price, ok := p.of(&s.Nodes[i]); ok {
			prices[s.Nodes[i].Name] = price
		} else {
			unpriced[s.Nodes[i].Name] = true
		}
	}
	r.Prices = &PriceSummary{Rule: p.rule(), HoursPerMonth: hoursPerMonth}
	for _, n := range r.Scenarios[0].Nodes {
		if unpriced[n.Name] {
			r.Prices.Unpriced = append(r.Prices.Unpriced, n.Name)
		}
	}
	slices.Sort(r.Prices.Unpriced)
	for i := range r.Scenarios {
		r.Scenarios[i].Money = monthly(r.Scenarios[i].Nodes, prices)
	}
}

func monthly(nodes []simulate.Node, prices map[string]float64) *Money {
	m := &Money{}
	for i := range nodes { // sorted, so that the sum of floats is always the same
		if nodes[i].Occupied() {
			continue
		}
		m.Empty += prices[nodes[i].Name] * hoursPerMonth
		if nodes[i].Removable() {
			m.Removable += prices[nodes[i].Name] * hoursPerMonth
		}
	}
	m.Empty, m.Removable = cents(m.Empty), cents(m.Removable)
	return m
}

func cents(amount float64) float64 { return math.Round(amount*100) / 100 }
