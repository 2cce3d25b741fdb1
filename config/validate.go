package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns everything that is wrong with the configuration, each with
// its field path and what is allowed.
func Validate(c Configuration) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, oneOf(field.NewPath("apiVersion"), c.APIVersion, APIVersion)...)
	errs = append(errs, oneOf(field.NewPath("kind"), c.Kind, Kind)...)
	errs = append(errs, oneOf(field.NewPath("mode"), c.Mode, ModeEnforce, ModeDryRun)...)
	errs = append(errs, oneOf(field.NewPath("annotations"), c.Annotations, AnnotationsFull, AnnotationsTarget)...)
	errs = append(errs, validateResources(field.NewPath("resources"), c.Resources)...)
	errs = append(errs, validateSchedulerNames(field.NewPath("schedulerNames"), c.SchedulerNames)...)
	errs = append(errs, validateSteering(c)...)
	errs = append(errs, validateScheduler(field.NewPath("scheduler"), c.Scheduler)...)
	errs = append(errs, validateNodes(field.NewPath("nodes"), c.Nodes)...)
	errs = append(errs, validateInFlight(field.NewPath("inFlight"), c.InFlight)...)
	errs = append(errs, validateServer(field.NewPath("server"), c.Server)...)
	errs = append(errs, oneOf(field.NewPath("log", "level"), c.Log.Level, LogInfo, LogDebug)...)
	errs = append(errs, oneOf(field.NewPath("log", "format"), c.Log.Format, LogJSON, LogConsole)...)
	return errs
}

// oneOf requires value to be among allowed.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// inRange requires low <= value <= high.
func inRange[T int | int64](path *field.Path, value, low, high T) field.ErrorList {
	if value >= low && value <= high {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be from %d to %d", low, high))}
}

func durationInRange(path *field.Path, d metav1.Duration, low, high time.Duration) field.ErrorList {
	if d.Duration >= low && d.Duration <= high {
		return nil
	}
	return field.ErrorList{field.Invalid(path, d.Duration.String(), fmt.Sprintf("must be from %s to %s", low, high))}
}

// nativeResources are counted by the scheduler itself and never mean a GPU.
const nativeResourceDomain = "kubernetes.io/"

func validateResources(path *field.Path, r Resources) field.ErrorList {
	var errs field.ErrorList
	if len(r.Names)+len(r.Prefixes) == 0 {
		errs = append(errs, field.Required(path.Child("names"), "at least one name or prefix, for example nvidia.com/gpu"))
	}
	seen := map[string]bool{}
	for i, name := range r.Names {
		p := path.Child("names").Index(i)
		errs = append(errs, validateExtendedName(p, name, name)...)
		if seen[name] {
			errs = append(errs, field.Duplicate(p, name))
		}
		seen[name] = true
	}
	for i, prefix := range r.Prefixes {
		p := path.Child("prefixes").Index(i)
		if !strings.HasSuffix(prefix, "-") && !strings.HasSuffix(prefix, "/") {
			errs = append(errs, field.Invalid(p, prefix, `must end in "-" or "/", for example nvidia.com/mig-`))
			continue
		}
		errs = append(errs, validateExtendedName(p, prefix, prefix+"x")...)
	}
	return errs
}

// validateExtendedName requires an extended resource name, domain/name.
func validateExtendedName(path *field.Path, value, name string) field.ErrorList {
	var errs field.ErrorList
	if !strings.Contains(name, "/") || strings.Contains(name, nativeResourceDomain) || strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) {
		return append(errs, field.Invalid(path, value, "must be an extended resource name such as nvidia.com/gpu"))
	}
	for _, msg := range validation.IsQualifiedName(name) {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}

func validateSchedulerNames(path *field.Path, names []string) field.ErrorList {
	var errs field.ErrorList
	if len(names) == 0 {
		errs = append(errs, field.Required(path, "at least one scheduler name, for example default-scheduler"))
	}
	for i, name := range names {
		for _, msg := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(path.Index(i), name, msg))
		}
	}
	return errs
}

func validateSteering(c Configuration) field.ErrorList {
	var errs field.ErrorList
	ranking, weights := field.NewPath("ranking"), field.NewPath("weights")
	errs = append(errs, oneOf(ranking.Child("strategy"), c.Ranking.Strategy, StrategyBestFit, StrategyMostAllocated)...)
	errs = append(errs, oneOf(ranking.Child("emptyNodes"), c.Ranking.EmptyNodes, SmallestFirst, LargestFirst)...)
	errs = append(errs, oneOf(weights.Child("weighting"), c.Weights.Weighting, WeightingChain, WeightingEqual)...)
	errs = append(errs, inRange(weights.Child("tailTerms"), c.Weights.TailTerms, 0, mostTailTerms)...)
	errs = append(errs, inRange(weights.Child("maxTerms"), c.Weights.MaxTerms, 1, mostHeadTerms)...)
	errs = append(errs, inRange(weights.Child("margin"), c.Weights.Margin, 1, 100)...)
	spreading, late := field.NewPath("spreading"), field.NewPath("lateSteering")
	errs = append(errs, oneOf(spreading.Child("default"), c.Spreading.Default, SpreadingNeutralize, SpreadingKeep)...)
	errs = append(errs, oneOf(spreading.Child("userConstraints"), c.Spreading.UserConstraints, UserConstraintsRespect, UserConstraintsIgnore)...)
	errs = append(errs, oneOf(late.Child("mode"), c.LateSteering.Mode, LateOff, LateWhenNothingFits, LateAlways)...)
	errs = append(errs, oneOf(late.Child("scope"), c.LateSteering.Scope, LateScopeNamespace, LateScopeCluster)...)
	return errs
}

func validateScheduler(path *field.Path, s Scheduler) field.ErrorList {
	var errs field.ErrorList
	if s.KubernetesVersion != "" {
		if _, err := ParseMinorVersion(s.KubernetesVersion); err != nil {
			errs = append(errs, field.Invalid(path.Child("kubernetesVersion"), s.KubernetesVersion,
				`must be "major.minor", for example "1.37"; leave it out to go by the API server's`))
		}
	}
	w, weights := s.PluginWeights, path.Child("pluginWeights")
	// kube-scheduler allows plugin weights up to MaxInt64/100; 100 is far above
	// any profile in use and keeps every sum within an int64.
	errs = append(errs, inRange(weights.Child("nodeAffinity"), w.NodeAffinity, 1, 100)...)
	errs = append(errs, inRange(weights.Child("taintToleration"), w.TaintToleration, 0, 100)...)
	errs = append(errs, inRange(weights.Child("podTopologySpread"), w.PodTopologySpread, 0, 100)...)
	errs = append(errs, inRange(weights.Child("interPodAffinity"), w.InterPodAffinity, 0, 100)...)
	errs = append(errs, inRange(weights.Child("nodeResourcesFit"), w.NodeResourcesFit, 0, 100)...)
	errs = append(errs, inRange(weights.Child("balancedAllocation"), w.BalancedAllocation, 0, 100)...)
	errs = append(errs, inRange(weights.Child("imageLocality"), w.ImageLocality, 0, 100)...)
	errs = append(errs, inRange(path.Child("percentageOfNodesToScore"), s.PercentageOfNodesToScore, 0, 100)...)
	errs = append(errs, ValidateScoringStrategy(path.Child("scoringStrategy"), s.ScoringStrategy)...)
	return append(errs, oneOf(path.Child("defaultConstraints"), s.DefaultConstraints, ConstraintsSystem, ConstraintsList)...)
}

func validateNodes(path *field.Path, n Nodes) field.ErrorList {
	var errs field.ErrorList
	if n.ExcludeSelector != nil {
		if len(n.ExcludeSelector.MatchLabels)+len(n.ExcludeSelector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(path.Child("excludeSelector"), "{}", "an empty selector selects all nodes; leave the field out to exclude none"))
		}
		if _, err := metav1.LabelSelectorAsSelector(n.ExcludeSelector); err != nil {
			errs = append(errs, field.Invalid(path.Child("excludeSelector"), metav1.FormatLabelSelector(n.ExcludeSelector), err.Error()))
		}
	}
	for i, key := range n.RemovalTaints {
		name := key
		if strings.HasSuffix(key, "/") || strings.HasSuffix(key, "-") {
			name += "x"
		}
		for _, msg := range validation.IsQualifiedName(name) {
			errs = append(errs, field.Invalid(path.Child("removalTaints").Index(i), key, msg))
		}
	}
	return append(errs, validateBackoff(path.Child("backoff"), n.Backoff)...)
}

func validateBackoff(path *field.Path, b Backoff) field.ErrorList {
	const day = 24 * time.Hour
	errs := inRange(path.Child("failures"), b.Failures, 0, 1000)
	errs = append(errs, durationInRange(path.Child("window"), b.Window, time.Second, time.Hour)...)
	errs = append(errs, durationInRange(path.Child("initial"), b.Initial, time.Second, day)...)
	return append(errs, durationInRange(path.Child("max"), b.Max, max(b.Initial.Duration, time.Second), day)...)
}

func validateInFlight(path *field.Path, f InFlight) field.ErrorList {
	errs := durationInRange(path.Child("targetMaxAge"), f.TargetMaxAge, time.Second, time.Hour)
	return append(errs, durationInRange(path.Child("reservationTTL"), f.ReservationTTL, 100*time.Millisecond, time.Minute)...)
}

func validateServer(path *field.Path, s Server) field.ErrorList {
	errs := inRange(path.Child("webhookPort"), s.WebhookPort, 1, 65535)
	if s.CertDir == "" {
		errs = append(errs, field.Required(path.Child("certDir"), "the folder with tls.crt and tls.key"))
	}
	errs = append(errs, oneOf(path.Child("minTLSVersion"), s.MinTLSVersion, "1.2", "1.3")...)
	errs = append(errs, validateClientNames(path, s)...)
	errs = append(errs, validateAddress(path.Child("metricsAddress"), s.MetricsAddress)...)
	errs = append(errs, validateAddress(path.Child("healthAddress"), s.HealthAddress)...)
	// The webhook's timeout is one second; an answer after it is no answer.
	errs = append(errs, durationInRange(path.Child("decisionTimeout"), s.DecisionTimeout, time.Millisecond, time.Second)...)
	return append(errs, inRange(path.Child("maxConcurrentRequests"), s.MaxConcurrentRequests, 1, 100_000)...)
}

// validateClientNames refuses names that nothing would be compared with: whoever
// wrote them believes that callers are verified.
func validateClientNames(path *field.Path, s Server) field.ErrorList {
	var errs field.ErrorList
	if len(s.ClientNames) > 0 && s.ClientCAFile == "" {
		errs = append(errs, field.Required(path.Child("clientCAFile"), "without it the clientNames are not verified"))
	}
	for i, name := range s.ClientNames {
		if name == "" {
			errs = append(errs, field.Invalid(path.Child("clientNames").Index(i), name, "must not be empty"))
		}
	}
	return errs
}

// validateAddress requires "host:port", ":port" or "0" for off.
func validateAddress(path *field.Path, address string) field.ErrorList {
	if address == "0" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path, address, `must be "host:port", ":port", or "0" for off`)}
	}
	return nil
}
