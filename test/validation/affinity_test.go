package validation

import (
	"fmt"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const (
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	hostname  = "kubernetes.io/hostname"
)

func (g *generator) affinity() any {
	a := object{}
	g.sometimes(a, 80, "nodeAffinity", g.nodeAffinity, g.nodeAffinity, g.nodeAffinity, object{}, nil)
	g.sometimes(a, 40, "podAffinity", g.podAffinity, g.podAffinity, object{}, nil)
	g.sometimes(a, 10, "podAntiAffinity", g.podAffinity, object{}, nil)
	g.sometimes(a, 5, "future", 1, object{}, nil)
	g.wildly(a, "nodeAffinity", list{}, "x")
	return a
}

// several returns a list of up to four elements.
func (g *generator) several(element func() any) func() any {
	return func() any {
		out := list{}
		for range g.next() % 5 {
			out = append(out, element())
		}
		return out
	}
}

func (g *generator) nodeAffinity() any {
	n := object{}
	terms := g.several(g.preferredTerm)
	g.sometimes(n, 75, preferred, terms, terms, terms, terms, list{}, nil)
	g.sometimes(n, 30, required, g.requiredTerms, g.requiredTerms, nil)
	g.wildly(n, required, object{}, object{"nodeSelectorTerms": list{}}, list{})
	return n
}

func (g *generator) preferredTerm() any {
	term := object{"weight": g.one(100, 1, 50, 99, 5), "preference": g.one(g.ourPreference, g.selectorTerm, g.selectorTerm, object{})}
	g.sometimes(term, 5, "future", nil, 1)
	g.wildly(term, "weight", 0, 101, -1, nil, "5", 1<<40)
	g.wildly(term, "preference", nil, list{}, object{"matchFields": list{object{"key": "metadata.uid", "operator": "In", "values": list{"x"}}}})
	if g.wild && g.chance(3) {
		return nil
	}
	return term
}

// ourPreference has our form: stale, of this cluster, or by a user's hand.
func (g *generator) ourPreference() any {
	return object{"matchFields": list{byName("In", g.one("gone", "g1", "g2").(string))}}
}

func byName(operator, name string) object {
	return object{"key": "metadata.name", "operator": operator, "values": list{name}}
}

func (g *generator) requiredTerms() any {
	terms := list{g.selectorTerm()}
	if g.chance(50) {
		terms = append(terms, g.selectorTerm())
	}
	return object{"nodeSelectorTerms": terms}
}

func (g *generator) selectorTerm() any {
	term := object{}
	expression := func() any {
		return g.one(
			object{"key": "topology.kubernetes.io/zone", "operator": "In", "values": list{"zone-a", "zone-b"}},
			object{"key": "gpu-model", "operator": "NotIn", "values": list{"a100"}},
			object{"key": "gpu-mem-gib", "operator": "Gt", "values": list{"41"}},
			object{"key": hostname, "operator": "Exists"},
			object{"key": "absent", "operator": "DoesNotExist"},
		)
	}
	expressions := g.several(expression)
	g.sometimes(term, 85, "matchExpressions", expressions, expressions, expressions, list{}, nil)
	g.sometimes(term, 15, "matchFields", list{byName("NotIn", "g2")}, list{byName("In", "g1")}, list{}, nil)
	g.wildly(term, "matchExpressions", list{object{"key": "a b", "operator": "In", "values": list{}}},
		list{object{"key": "gpu-mem-gib", "operator": "Gt", "values": list{"x"}}}, list{nil}, list{object{"key": "a", "operator": "Is"}})
	return term
}

func (g *generator) podAffinity() any {
	p := object{}
	weighted := g.several(func() any {
		term := object{"weight": g.one(100, 1, 50), "podAffinityTerm": g.one(g.lateTerm, g.podTerm, g.podTerm)}
		g.wildly(term, "weight", 0, 101, nil)
		return term
	})
	g.sometimes(p, 75, preferred, weighted, weighted, weighted, list{}, nil)
	g.sometimes(p, 10, required, g.several(g.podTerm), list{}, nil)
	return p
}

// lateTerm has the form of our late steering.
func (g *generator) lateTerm() any {
	term := object{"topologyKey": hostname, "labelSelector": object{"matchLabels": object{config.LabelLate: g.one("nvidia.com-gpu", "stale")}}}
	g.sometimes(term, 20, "namespaceSelector", object{})
	return term
}

func (g *generator) podTerm() any {
	term := object{"topologyKey": g.one(hostname, "topology.kubernetes.io/zone"), "labelSelector": g.one(object{"matchLabels": object{"app": "train"}}, object{}, nil)}
	g.sometimes(term, 10, "matchLabelKeys", list{"pod-template-hash"}, list{})
	g.sometimes(term, 10, "namespaces", list{"other"}, list{})
	g.wildly(term, "topologyKey", "", "a b", nil)
	return term
}

func (g *generator) constraints() any {
	out := list{}
	for i := range 1 + g.next()%3 {
		out = append(out, g.constraint(i))
	}
	return out
}

func (g *generator) constraint(i int) any {
	if g.chance(40) { // the neutral one, as on a copy
		return object{"maxSkew": 1<<31 - 1, "topologyKey": hostname, "whenUnsatisfiable": "ScheduleAnyway",
			"labelSelector": object{"matchExpressions": list{object{"key": config.LabelNone, "operator": "In", "values": list{"none"}}}}}
	}
	c := object{"maxSkew": 1 + i, "topologyKey": fmt.Sprint("topology.example.com/level-", i), "whenUnsatisfiable": g.one("ScheduleAnyway", "DoNotSchedule"),
		"labelSelector": g.one(object{"matchLabels": object{"app": "train"}}, object{}, nil)}
	g.sometimes(c, 10, "matchLabelKeys", list{"pod-template-hash"}, list{})
	g.sometimes(c, 10, "nodeTaintsPolicy", "Honor", "Ignore")
	g.wildly(c, "maxSkew", 0, -1, nil)
	g.wildly(c, "whenUnsatisfiable", "", "Never")
	return c
}
