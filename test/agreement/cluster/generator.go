package cluster

import (
	"math/rand/v2"
	"time"
)

// The GPU resources of random clusters.
const (
	NVIDIA = "nvidia.com/gpu"
	AMD    = "amd.com/gpu"
	MIG    = "nvidia.com/mig-1g.5gb"
)

// Generator makes random objects: the same for the same seed.
type Generator struct {
	*rand.Rand
	// Count is how many pods it has made; each is named after it.
	Count int
	// podLevel is the chance in percent that a pod has resources of its own,
	// beside its containers'.
	podLevel int
	// SameSizes gives an image the same size on every node.
	SameSizes bool
	// Plain leaves out what breaks an assumption of the chain.
	Plain bool
	// Targets leaves out nodes that the scheduler may use and we never choose:
	// cordoned, not ready, or about to be removed.
	Targets bool
}

// NewGenerator returns a generator of that seed.
func NewGenerator(seed uint64) *Generator {
	return &Generator{Rand: rand.New(rand.NewPCG(seed, 42))}
}

// One returns one of the values.
func One[T any](g *Generator, values ...T) T { return values[g.IntN(len(values))] }

// Chance is true in percent of a hundred cases.
func (g *Generator) Chance(percent int) bool { return g.IntN(100) < percent }

// Some keeps each value with a chance in percent.
func Some[T any](g *Generator, percent int, values ...T) []T {
	var out []T
	for _, v := range values {
		if g.Chance(percent) {
			out = append(out, v)
		}
	}
	return out
}

// Start is when everything in a random cluster was created.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Team is the namespace of all pods.
const Team = "team"
