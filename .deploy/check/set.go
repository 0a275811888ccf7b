package check

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Object is what every object of Kubernetes is.
type Object interface {
	runtime.Object
	meta.Object
}

// Set is what is applied together.
type Set struct{ Objects []Object }

// kinds are the groups that our objects are of. Any other kind is a fault.
func kinds() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	err := errors.Join(apps.AddToScheme(s), autoscaling.AddToScheme(s), core.AddToScheme(s), networking.AddToScheme(s),
		policy.AddToScheme(s), rbac.AddToScheme(s), monitoring.AddToScheme(s))
	return s, err
}

// Decode reads documents as the API server would with strict validation: unknown
// and repeated fields are errors.
func Decode(text []byte) (*Set, error) {
	scheme, err := kinds()
	if err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(string(text))))
	set := &Set{}
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return set, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read document: %w", err)
		}
		if isComment(document) {
			continue
		}
		decoded, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("decode %.200q: %w", document, err)
		}
		object, ok := decoded.(Object)
		if !ok {
			return nil, fmt.Errorf("decode %T: want an object with a name", decoded)
		}
		set.Objects = append(set.Objects, object)
	}
}

// isComment is whether a document has nothing but comments.
func isComment(document []byte) bool {
	for line := range strings.Lines(string(document)) {
		line = strings.TrimSpace(line)
		if line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// All are the set's objects of one type.
func All[T Object](s *Set) []T {
	var all []T
	for _, o := range s.Objects {
		if t, ok := o.(T); ok {
			all = append(all, t)
		}
	}
	return all
}

// Named is the object of one type by its name, or false.
func Named[T Object](s *Set, name string) (T, bool) {
	for _, o := range All[T](s) {
		if o.GetName() == name {
			return o, true
		}
	}
	var none T
	return none, false
}
