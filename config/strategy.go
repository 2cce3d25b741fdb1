package config

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateScoringStrategy refuses what kube-scheduler refuses of its own
// scoringStrategy, and a strategy without resources. The fields below path have the
// same names in both configurations.
func ValidateScoringStrategy(path *field.Path, s ScoringStrategy) field.ErrorList {
	errs := oneOf(path.Child("type"), s.Type, SchedulerLeastAllocated, SchedulerMostAllocated, SchedulerRequestedToCapacityRatio)
	if len(s.Resources) == 0 {
		errs = append(errs, field.Required(path.Child("resources"), "at least one resource, for example {name: cpu, weight: 1}"))
	}
	for i, r := range s.Resources {
		p := path.Child("resources").Index(i)
		for _, msg := range validation.IsQualifiedName(r.Name) {
			errs = append(errs, field.Invalid(p.Child("name"), r.Name, msg))
		}
		errs = append(errs, inRange(p.Child("weight"), r.Weight, 1, 100)...)
	}
	shape := path.Child("requestedToCapacityRatio", "shape")
	if s.Type != SchedulerRequestedToCapacityRatio {
		if len(s.Ratio.Shape) > 0 {
			errs = append(errs, field.Forbidden(shape, "only with type RequestedToCapacityRatio; set that type or leave the shape out"))
		}
		return errs
	}
	return append(errs, validateShape(shape, s.Ratio.Shape)...)
}

// validateShape requires points in order of their utilization.
func validateShape(path *field.Path, shape []UtilizationShapePoint) field.ErrorList {
	if len(shape) == 0 {
		return field.ErrorList{field.Required(path, "at least one point, for example {utilization: 0, score: 0} and {utilization: 100, score: 10}")}
	}
	var errs field.ErrorList
	for i, point := range shape {
		p := path.Index(i)
		errs = append(errs, inRange(p.Child("utilization"), point.Utilization, 0, 100)...)
		errs = append(errs, inRange(p.Child("score"), point.Score, 0, 10)...)
		if i > 0 && shape[i-1].Utilization >= point.Utilization {
			errs = append(errs, field.Invalid(p.Child("utilization"), point.Utilization, "must be above that of the point before; sort the points and keep one for each utilization"))
		}
	}
	return errs
}
