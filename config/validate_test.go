package config_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func TestValidate(t *testing.T) {
	duration := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	tests := map[string]struct {
		change func(*config.Configuration)
		want   []string // type and path of each error
	}{
		"apiVersion": {func(c *config.Configuration) { c.APIVersion = "v1" }, []string{"NotSupported apiVersion"}},
		"kind":       {func(c *config.Configuration) { c.Kind = "" }, []string{"NotSupported kind"}},
		"enums": {func(c *config.Configuration) {
			c.Mode, c.Annotations, c.Ranking.Strategy, c.Ranking.EmptyNodes = "steer", "x", "x", ""
			c.Weights.Weighting, c.Spreading.Default, c.Spreading.UserConstraints = "x", "x", "x"
			c.LateSteering.Mode, c.LateSteering.Scope, c.Scheduler.DefaultConstraints = "x", "x", "x"
			c.Scheduler.ScoringStrategy.Type, c.Server.MinTLSVersion, c.Log.Level, c.Log.Format = "x", "1.1", "x", "x"
		}, []string{
			"NotSupported annotations", "NotSupported lateSteering.mode", "NotSupported lateSteering.scope", "NotSupported log.format",
			"NotSupported log.level", "NotSupported mode", "NotSupported ranking.emptyNodes", "NotSupported ranking.strategy",
			"NotSupported scheduler.defaultConstraints", "NotSupported scheduler.scoringStrategy.type", "NotSupported server.minTLSVersion",
			"NotSupported spreading.default", "NotSupported spreading.userConstraints", "NotSupported weights.weighting",
		}},
		"numbers too small": {func(c *config.Configuration) {
			c.Weights.MaxTerms, c.Weights.TailTerms, c.Weights.Margin = 0, -1, 0
			c.Scheduler.PercentageOfNodesToScore, c.Scheduler.PluginWeights.NodeAffinity = -1, 0
			c.Server.WebhookPort, c.Server.MaxConcurrentRequests, c.Server.DecisionTimeout = 0, 0, duration(0)
			c.InFlight = config.InFlight{}
		}, []string{
			"Invalid inFlight.reservationTTL", "Invalid inFlight.targetMaxAge",
			"Invalid scheduler.percentageOfNodesToScore", "Invalid scheduler.pluginWeights.nodeAffinity",
			"Invalid server.decisionTimeout", "Invalid server.maxConcurrentRequests", "Invalid server.webhookPort",
			"Invalid weights.margin", "Invalid weights.maxTerms", "Invalid weights.tailTerms",
		}},
		"numbers too large": {func(c *config.Configuration) {
			c.Weights.MaxTerms, c.Weights.TailTerms, c.Weights.Margin = 101, 101, 101
			c.Scheduler.PercentageOfNodesToScore = 101
			c.Server.WebhookPort, c.Server.MaxConcurrentRequests = 65536, 100_001
			c.Server.DecisionTimeout = duration(time.Second + 1) // the webhook's timeout in the API server
			c.InFlight.TargetMaxAge, c.InFlight.ReservationTTL = duration(time.Hour+1), duration(time.Minute+1)
		}, []string{
			"Invalid inFlight.reservationTTL", "Invalid inFlight.targetMaxAge", "Invalid scheduler.percentageOfNodesToScore",
			"Invalid server.decisionTimeout", "Invalid server.maxConcurrentRequests", "Invalid server.webhookPort",
			"Invalid weights.margin", "Invalid weights.maxTerms", "Invalid weights.tailTerms",
		}},
		"numbers just right": {func(c *config.Configuration) {
			c.Weights.MaxTerms, c.Weights.TailTerms, c.Weights.Margin = 100, 0, 100
			c.Scheduler.PercentageOfNodesToScore = 100
			c.Server.WebhookPort, c.Server.MaxConcurrentRequests, c.Server.DecisionTimeout = 65535, 1, duration(time.Second)
			c.InFlight.TargetMaxAge, c.InFlight.ReservationTTL = duration(time.Second), duration(time.Minute)
		}, nil},
		"plugin weights": {func(c *config.Configuration) {
			c.Scheduler.PluginWeights = config.PluginWeights{NodeAffinity: 101, TaintToleration: -1, PodTopologySpread: 101, InterPodAffinity: -1,
				NodeResourcesFit: 101, BalancedAllocation: -1, ImageLocality: 101}
		}, []string{
			"Invalid scheduler.pluginWeights.balancedAllocation", "Invalid scheduler.pluginWeights.imageLocality",
			"Invalid scheduler.pluginWeights.interPodAffinity", "Invalid scheduler.pluginWeights.nodeAffinity",
			"Invalid scheduler.pluginWeights.nodeResourcesFit", "Invalid scheduler.pluginWeights.podTopologySpread",
			"Invalid scheduler.pluginWeights.taintToleration",
		}},
		"plugins switched off": {func(c *config.Configuration) { c.Scheduler.PluginWeights = config.PluginWeights{NodeAffinity: 1} }, nil},
		"no strategy resources": {func(c *config.Configuration) { c.Scheduler.ScoringStrategy.Resources = nil },
			[]string{"Required scheduler.scoringStrategy.resources"}},
		"strategy resources": {func(c *config.Configuration) {
			c.Scheduler.ScoringStrategy.Resources = []config.ResourceWeight{{Name: "cpu", Weight: 1}, {Name: "a b", Weight: 101}, {}}
		}, []string{
			"Invalid scheduler.scoringStrategy.resources[1].name", "Invalid scheduler.scoringStrategy.resources[1].weight",
			"Invalid scheduler.scoringStrategy.resources[2].name", "Invalid scheduler.scoringStrategy.resources[2].weight",
		}},
		"a shape": {func(c *config.Configuration) {
			c.Scheduler.ScoringStrategy.Type = config.SchedulerRequestedToCapacityRatio
			c.Scheduler.ScoringStrategy.Ratio.Shape = []config.UtilizationShapePoint{{0, 10}, {85, 0}, {100, 10}}
		}, nil},
		"no shape": {func(c *config.Configuration) {
			c.Scheduler.ScoringStrategy.Type = config.SchedulerRequestedToCapacityRatio
		},
			[]string{"Required scheduler.scoringStrategy.requestedToCapacityRatio.shape"}},
		"a shape for another type": {func(c *config.Configuration) {
			c.Scheduler.ScoringStrategy.Ratio.Shape = []config.UtilizationShapePoint{{0, 10}}
		}, []string{"Forbidden scheduler.scoringStrategy.requestedToCapacityRatio.shape"}},
		"shape points": {func(c *config.Configuration) {
			c.Scheduler.ScoringStrategy.Type = config.SchedulerRequestedToCapacityRatio
			c.Scheduler.ScoringStrategy.Ratio.Shape = []config.UtilizationShapePoint{{-1, -1}, {50, 11}, {50, 0}, {40, 0}, {101, 10}}
		}, []string{
			"Invalid scheduler.scoringStrategy.requestedToCapacityRatio.shape[0].score",
			"Invalid scheduler.scoringStrategy.requestedToCapacityRatio.shape[0].utilization",
			"Invalid scheduler.scoringStrategy.requestedToCapacityRatio.shape[1].score",
			"Invalid scheduler.scoringStrategy.requestedToCapacityRatio.shape[2].utilization",
			"Invalid scheduler.scoringStrategy.requestedToCapacityRatio.shape[3].utilization",
			"Invalid scheduler.scoringStrategy.requestedToCapacityRatio.shape[4].utilization",
		}},
		"no resources":  {func(c *config.Configuration) { c.Resources = config.Resources{} }, []string{"Required resources.names"}},
		"only prefixes": {func(c *config.Configuration) { c.Resources.Names = nil }, nil},
		"resource names": {func(c *config.Configuration) {
			c.Resources.Names = []string{"a.com/gpu", "a.com/gpu", "gpu", "cpu", "kubernetes.io/gpu", "a.com/x y", `a.com/"`, "A.com/gpu", "a.com/", ""}
		}, []string{
			"Duplicate resources.names[1]", "Invalid resources.names[2]", "Invalid resources.names[3]", "Invalid resources.names[4]",
			"Invalid resources.names[5]", "Invalid resources.names[6]", "Invalid resources.names[7]", "Invalid resources.names[8]",
			"Invalid resources.names[9]",
		}},
		"resource prefixes": {func(c *config.Configuration) {
			c.Resources.Prefixes = []string{"a.com/mig-", "a.com/", "a.com/mig", "-", "/", "", "kubernetes.io/", "gpu-", `a.com/"-`}
		}, []string{
			"Invalid resources.prefixes[2]", "Invalid resources.prefixes[3]", "Invalid resources.prefixes[4]", "Invalid resources.prefixes[5]",
			"Invalid resources.prefixes[6]", "Invalid resources.prefixes[7]", "Invalid resources.prefixes[8]",
		}},
		"no scheduler names": {func(c *config.Configuration) { c.SchedulerNames = nil }, []string{"Required schedulerNames"}},
		"scheduler names": {func(c *config.Configuration) { c.SchedulerNames = []string{"ok", "", "Not OK"} },
			[]string{"Invalid schedulerNames[1]", "Invalid schedulerNames[2]"}},
		"exclude selector": {func(c *config.Configuration) {
			c.Nodes.ExcludeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
		}, []string{"Invalid nodes.excludeSelector"}},
		"removal taints": {func(c *config.Configuration) { c.Nodes.RemovalTaints = []string{"a", "a.com/", "a-", "", "a b", "/"} },
			[]string{"Invalid nodes.removalTaints[3]", "Invalid nodes.removalTaints[4]", "Invalid nodes.removalTaints[5]"}},
		"no removal taints": {func(c *config.Configuration) { c.Nodes.RemovalTaints = nil }, nil},
		"client names": {func(c *config.Configuration) {
			c.Server.ClientCAFile, c.Server.ClientNames = "/ca.crt", []string{"kube-apiserver", "spiffe://cluster/api"}
		}, nil},
		"empty client name": {func(c *config.Configuration) {
			c.Server.ClientCAFile, c.Server.ClientNames = "/ca.crt", []string{"a", ""}
		},
			[]string{"Invalid server.clientNames[1]"}},
		"client names without a CA": {func(c *config.Configuration) { c.Server.ClientNames = []string{"a"} },
			[]string{"Required server.clientCAFile"}},
		"no certificates": {func(c *config.Configuration) { c.Server.CertDir = "" }, []string{"Required server.certDir"}},
		"addresses": {func(c *config.Configuration) { c.Server.MetricsAddress, c.Server.HealthAddress = "8443", ":http" },
			[]string{"Invalid server.healthAddress", "Invalid server.metricsAddress"}},
		"addresses off": {func(c *config.Configuration) { c.Server.MetricsAddress, c.Server.HealthAddress = "0", "0" }, nil},
		"addresses with a host": {func(c *config.Configuration) {
			c.Server.MetricsAddress, c.Server.HealthAddress = "[::1]:1", "10.0.0.1:0"
		}, nil},
		"address port too large": {func(c *config.Configuration) { c.Server.MetricsAddress = ":65536" }, []string{"Invalid server.metricsAddress"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			errs := config.Validate(change(tc.change))
			if diff := cmp.Diff(tc.want, paths(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s\n%v", diff, errs.ToAggregate())
			}
		})
	}
}

// paths are type and field path of the errors, sorted, each once.
func paths(errs field.ErrorList) []string {
	short := map[field.ErrorType]string{
		field.ErrorTypeInvalid: "Invalid", field.ErrorTypeNotSupported: "NotSupported",
		field.ErrorTypeRequired: "Required", field.ErrorTypeDuplicate: "Duplicate", field.ErrorTypeForbidden: "Forbidden",
	}
	var out []string
	for _, err := range errs {
		out = append(out, short[err.Type]+" "+err.Field)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestKubernetesVersion(t *testing.T) {
	for version, valid := range map[string]bool{
		"": true, "1.30": true, "1.37": true, "2.0": true,
		"1": false, "v1.37": false, "1.37.2": false, "1.37+": false, "1.-1": false, "-1.37": false, "1. 37": false, ".": false,
		"1.99999999999999999999": false,
	} {
		t.Run(version, func(t *testing.T) {
			cfg := change(func(c *config.Configuration) { c.Scheduler.KubernetesVersion = version })
			var want []string
			if !valid {
				want = []string{"Invalid scheduler.kubernetesVersion"}
			}
			if diff := cmp.Diff(want, paths(config.Validate(cfg))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
