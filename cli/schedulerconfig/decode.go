package schedulerconfig

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
)

// decode decodes strictly, as kube-scheduler does, the arguments of the plugins
// included.
func decode(raw []byte) (*schedulerv1.KubeSchedulerConfiguration, error) {
	scheme := runtime.NewScheme()
	if err := schedulerv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering kube-scheduler's types: %w", err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	object, gvk, err := decoder.Decode(raw, nil, nil)
	if gvk != nil && gvk.GroupVersion() != schedulerv1.SchemeGroupVersion {
		return nil, refuseVersion(gvk.GroupVersion())
	}
	if err != nil {
		return nil, explained(err)
	}
	cfg, ok := object.(*schedulerv1.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("decoding: it is a %T", object)
	}
	if err := cfg.DecodeNestedObjects(decoder); err != nil {
		return nil, explained(err)
	}
	return cfg, nil
}

func refuseVersion(v schema.GroupVersion) error {
	return fmt.Errorf("apiVersion: %s is read by no kube-scheduler since Kubernetes 1.29; write %s, and remove the fields that it does not have",
		v, schedulerv1.SchemeGroupVersion)
}

// explained adds what to do about an unknown field.
func explained(err error) error {
	if runtime.IsStrictDecodingError(err) {
		return fmt.Errorf("%w; mend the spelling or remove the field", err)
	}
	return err
}

// checkProfiles refuses what kube-scheduler refuses of the list of profiles, and
// fills in the name that a single profile may leave out.
func checkProfiles(cfg *schedulerv1.KubeSchedulerConfiguration) error {
	if len(cfg.Profiles) == 0 {
		cfg.Profiles = []schedulerv1.KubeSchedulerProfile{{}}
	}
	if len(cfg.Profiles) == 1 && cfg.Profiles[0].SchedulerName == nil {
		name := defaultScheduler
		cfg.Profiles[0].SchedulerName = &name
	}
	var errs []error
	seen := map[string]bool{}
	for i := range cfg.Profiles {
		path := field.NewPath("profiles").Index(i).Child("schedulerName")
		switch name := cfg.Profiles[i].SchedulerName; {
		case name == nil || *name == "":
			errs = append(errs, field.Required(path, "each of several profiles has a name"))
		case seen[*name]:
			errs = append(errs, field.Duplicate(path, *name))
		case len(validation.IsDNS1123Subdomain(*name)) > 0:
			errs = append(errs, field.Invalid(path, *name, "cannot be one of gpu-binpacker's schedulerNames; choose a name of lower case letters, digits, '-' and '.'"))
		default:
			seen[*name] = true
		}
	}
	return errors.Join(errs...)
}
