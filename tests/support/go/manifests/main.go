// Decodes Kubernetes manifests from standard input with Kubernetes' own types, strictly: a field that does not exist, or has
// another type, is an error. Prints one line for each manifest: kind and name.
package main

import (
	"bufio"
	"fmt"
	"os"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	reader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

var kinds = map[string]func() any{
	"apps/v1/StatefulSet":           func() any { return &apps.StatefulSet{} },
	"apps/v1/Deployment":            func() any { return &apps.Deployment{} },
	"batch/v1/CronJob":              func() any { return &batch.CronJob{} },
	"batch/v1/Job":                  func() any { return &batch.Job{} },
	"v1/ConfigMap":                  func() any { return &core.ConfigMap{} },
	"v1/Pod":                        func() any { return &core.Pod{} },
	"v1/Secret":                     func() any { return &core.Secret{} },
	"v1/Service":                    func() any { return &core.Service{} },
	"v1/ServiceAccount":             func() any { return &core.ServiceAccount{} },
	"policy/v1/PodDisruptionBudget": func() any { return &policy.PodDisruptionBudget{} },
	"rbac.authorization.k8s.io/v1/ClusterRole":        func() any { return &rbac.ClusterRole{} },
	"rbac.authorization.k8s.io/v1/ClusterRoleBinding": func() any { return &rbac.ClusterRoleBinding{} },
}

func main() {
	documents := reader.NewYAMLReader(bufio.NewReader(os.Stdin))
	failed := false
	for {
		text, err := documents.Read()
		if err != nil {
			break
		}
		var head struct {
			meta.TypeMeta   `json:",inline"`
			meta.ObjectMeta `json:"metadata"`
		}
		if err := yaml.Unmarshal(text, &head); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if head.Kind == "" {
			continue
		}
		known := kinds[head.APIVersion+"/"+head.Kind]
		if known == nil {
			fmt.Printf("%s %s (of another API: not checked)\n", head.Kind, head.Name)
			continue
		}
		if err := yaml.UnmarshalStrict(text, known()); err != nil {
			fmt.Fprintf(os.Stderr, "%s %s: %v\n", head.Kind, head.Name, err)
			failed = true
			continue
		}
		fmt.Printf("%s %s\n", head.Kind, head.Name)
	}
	if failed {
		os.Exit(1)
	}
}
