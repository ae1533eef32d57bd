package main

import (
	"github.com/oapi-codegen/nullable"
	"platform.io/test/clients/generated/customresources"
	"platform.io/test/clients/generated/platform"
)

func (c *cases) user() (any, error) {
	const name = "made-by-go"
	body := platform.User{
		ApiVersion: platform.UserApiVersionIamPlatformIov1alpha2,
		Kind:       platform.UserKindUser,
		Metadata:   platform.ObjectMeta{Name: name},
		Spec: &platform.UserSpec{
			DisplayName: new("One"), Email: new(name + "@example.com"), Groups: &[]string{"keepers"},
		},
	}
	made, err := c.platform.CreateIamUserWithResponse(c.ctx, nil, body)
	if err != nil {
		return nil, err
	}
	if made.JSON201 == nil {
		return nil, unexpected(made.Body)
	}
	patched, err := c.platform.PatchIamUserWithApplicationMergePatchPlusJSONBodyWithResponse(c.ctx, name, nil, platform.UserPatch{
		Spec: &platform.UserSpecPatch{
			DisplayName: nullable.NewNullableWithValue("Two"), Email: nullable.NewNullNullable[string](),
		},
	})
	if err != nil {
		return nil, err
	}
	if patched.JSON200 == nil {
		return nil, unexpected(patched.Body)
	}
	again, err := c.platform.CreateIamUserWithResponse(c.ctx, nil, body)
	if err != nil {
		return nil, err
	}
	if again.JSON409 == nil {
		return nil, unexpected(again.Body)
	}
	all, err := c.platform.ListIamUsersWithResponse(c.ctx, &platform.ListIamUsersParams{Name: new(name)})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, user := range all.JSON200.Items {
		names = append(names, user.Metadata.Name)
	}
	gone, err := c.platform.DeleteIamUserWithResponse(c.ctx, name, nil, nil)
	if err != nil {
		return nil, err
	}
	if gone.JSON200 == nil {
		return nil, unexpected(gone.Body)
	}
	done, err := gone.JSON200.AsDone()
	if err != nil {
		return nil, err
	}
	was, is := made.JSON201.Spec, patched.JSON200.Spec
	return seen{
		"made":    []any{of(was.DisplayName), of(was.Email), of(was.Groups), of(was.State)},
		"patched": []any{of(is.DisplayName), of(is.Email)},
		"again":   refused(again.JSON409),
		"all":     []any{names, all.JSON200.TotalItems},
		"gone":    done.Kind,
	}, nil
}

// customResource reads a User through the gateway, as kube-apiserver stores the User.
func (c *cases) customResource() (any, error) {
	const name = "custom-by-go"
	made, err := c.cluster.CreateIamPlatformIoV1alpha2UserWithResponse(c.ctx, nil, customresources.IoPlatformIamV1alpha2User{
		ApiVersion: new("iam.platform.io/v1alpha2"),
		Kind:       new("User"),
		Metadata:   &customresources.ObjectMeta{Name: name},
		Spec:       &customresources.IoPlatformIamV1alpha2UserSpec{DisplayName: new("Three")},
	})
	if err != nil {
		return nil, err
	}
	if made.JSON201 == nil {
		return nil, unexpected(made.Body)
	}
	listed, err := c.cluster.ListIamPlatformIoV1alpha2UserWithResponse(c.ctx, &customresources.ListIamPlatformIoV1alpha2UserParams{
		FieldSelector: new("metadata.name=" + name),
	})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, user := range listed.JSON200.Items {
		names = append(names, user.Metadata.Name)
	}
	patch := customresources.Patch{"spec": map[string]any{"state": "Disabled"}}
	patched, err := c.cluster.PatchIamPlatformIoV1alpha2UserWithApplicationMergePatchPlusJSONBodyWithResponse(c.ctx, name, nil, patch)
	if err != nil {
		return nil, err
	}
	if patched.JSON200 == nil {
		return nil, unexpected(patched.Body)
	}
	gone, err := c.cluster.DeleteIamPlatformIoV1alpha2UserWithResponse(c.ctx, name, nil, customresources.DeleteOptions{})
	if err != nil {
		return nil, err
	}
	if gone.JSON200 == nil {
		return nil, unexpected(gone.Body)
	}
	missing, err := c.cluster.ReadIamPlatformIoV1alpha2UserWithResponse(c.ctx, name, nil)
	if err != nil {
		return nil, err
	}
	if missing.JSON404 == nil {
		return nil, unexpected(missing.Body)
	}
	status := missing.JSON404
	return seen{
		"made":    []any{of(made.JSON201.Kind), of(made.JSON201.Spec.DisplayName), of(made.JSON201.Spec.State)},
		"listed":  names,
		"patched": of(patched.JSON200.Spec.State),
		"gone":    of(gone.JSON200.Status),
		"missing": []any{of(status.Code), of(status.Reason), of(status.Details.Kind), of(status.Details.Name)},
	}, nil
}
