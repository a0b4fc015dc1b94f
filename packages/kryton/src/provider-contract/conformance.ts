/**
 * What every provider must do, as tests: run against each implementation.
 *
 * A provider's own test file calls {@link conformance} with how to make one. Checks of things a
 * provider says it cannot do assert that it refuses them properly.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemRandom } from "@kontinuum/std";
import { builtInImages } from "../catalog/built-in.ts";
import type { CatalogImage } from "../model/image.ts";
import type { MachineSpec } from "../model/machine.ts";
import {
  ProviderError,
  type CreateRequest,
  type MachineRef,
  type Observation,
  type Provider,
  type ProviderCall,
} from "./contract.ts";

/** A provider under test and how to get rid of it. */
export interface Subject extends AsyncDisposable {
  readonly provider: Provider;
  /** An image it can make machines from. */
  readonly image: string;
  /** The provider as another process would see it: same outside world, nothing remembered. */
  reopen(): Promise<Provider>;
}

/** A call that nobody cancels. */
export const patientCall: ProviderCall = { signal: new AbortController().signal, progress: () => {} };

/** How long a machine may take to reach a settled state, in looks a few milliseconds apart. */
const maxLooks = 400;

/** A request for a machine of this image. */
export function requestFor(image: string, name: string, project = "alpha"): CreateRequest {
  const entry: CatalogImage | undefined = builtInImages.find(({ id }) => id === image);
  if (!entry) throw new RangeError(`image ${image} is not built in`);
  const spec: MachineSpec = {
    name,
    image,
    compute: { cpu: Math.max(1, entry.minCpu), memoryMiB: Math.max(1024, entry.minMemoryMiB) },
    disk: { sizeGiB: Math.max(20, entry.defaultDiskGiB) },
    network: {},
  };
  return {
    id: systemRandom.uuid(),
    project,
    spec,
    providerRef: { provider: "", name },
    image: { ...entry, ready: true },
    secrets: {},
    createdAt: "2026-01-01T00:00:00Z",
    expiresAt: undefined,
    cloneOf: undefined,
  };
}

/** Registers the tests of one provider. */
export function conformance(name: string, open: () => Promise<Subject>): void {
  const made = async (subject: Subject, label: string): Promise<CreateRequest> => {
    const request = withReference(subject.provider, requestFor(subject.image, label));
    await subject.provider.check(request, patientCall);
    await subject.provider.create(request, patientCall);
    return request;
  };

  test(`${name}: a machine is created, observed, stopped, started and deleted`, async () => {
    await using subject = await open();
    const { provider } = subject;
    const request = await made(subject, "life");
    await settled(provider, request, "running");
    await provider.stop(request, { force: false }, patientCall);
    await settled(provider, request, "stopped");
    await provider.start(request, patientCall);
    await settled(provider, request, "running");
    await provider.delete(request, patientCall);
    await gone(provider, request);
  });

  test(`${name}: create with the same id finds what was made and makes nothing twice`, async () => {
    await using subject = await open();
    const request = withReference(subject.provider, requestFor(subject.image, "twice"));
    const first = await subject.provider.create(request, patientCall);
    const again = await (await subject.reopen()).create(request, patientCall);
    assert.deepEqual(again.providerRef, first.providerRef);
    assert.equal((await inventory(subject.provider)).filter(({ id }) => id === request.id).length, 1);
    await subject.provider.delete(request, patientCall);
  });

  test(`${name}: what is already so stays so without an error`, async () => {
    await using subject = await open();
    const { provider } = subject;
    const request = await made(subject, "idem");
    await settled(provider, request, "running");
    await provider.start(request, patientCall);
    await provider.stop(request, { force: provider.capabilities.forceStop }, patientCall);
    await settled(provider, request, "stopped");
    await provider.stop(request, { force: false }, patientCall);
    await provider.delete(request, patientCall);
    await provider.delete(request, patientCall);
    await gone(provider, request);
  });

  test(`${name}: another process sees the same machines`, async () => {
    await using subject = await open();
    const request = await made(subject, "seen");
    const other = await subject.reopen();
    assert.ok(await other.observe(request, patientCall));
    const found = (await inventory(other)).find(({ id }) => id === request.id);
    assert.equal(found?.project, request.project);
    assert.equal(found?.spec?.name, "seen");
    await other.delete(request, patientCall);
    assert.equal(await subject.provider.observe(request, patientCall), undefined);
  });

  test(`${name}: a machine of another project, or none, is not found`, async () => {
    await using subject = await open();
    const request = await made(subject, "mine");
    const elsewhere: MachineRef = { ...request, project: "beta" };
    assert.equal(await subject.provider.observe(elsewhere, patientCall), undefined);
    await assert.rejects(subject.provider.start(elsewhere, patientCall), isKind("not-found"));
    const nobody = withReference(subject.provider, requestFor(subject.image, "nobody"));
    await assert.rejects(subject.provider.stop(nobody, { force: false }, patientCall), isKind("not-found"));
    await subject.provider.delete(request, patientCall);
  });

  test(`${name}: work that is cancelled before it begins does nothing`, async () => {
    await using subject = await open();
    const request = withReference(subject.provider, requestFor(subject.image, "never"));
    const cancelled: ProviderCall = { signal: AbortSignal.abort(), progress: () => {} };
    await assert.rejects(subject.provider.create(request, cancelled));
    assert.equal(await subject.provider.observe(request, patientCall), undefined);
  });

  test(`${name}: capabilities are honest`, async () => {
    await using subject = await open();
    const { provider } = subject;
    const { capabilities } = provider;
    assert.equal(provider.snapshots !== undefined, capabilities.snapshots, "snapshots");
    assert.equal(provider.console !== undefined, capabilities.console, "console");
    assert.equal(provider.restart !== undefined, capabilities.restart, "restart");
    assert.equal(provider.pause !== undefined, capabilities.pause, "pause");
    assert.equal(provider.resume !== undefined, capabilities.pause, "resume");
    assert.equal(provider.resize !== undefined, capabilities.resize, "resize");
    const request = await made(subject, "caps");
    await settled(provider, request, "running");
    if (provider.restart) {
      await provider.restart(request, patientCall);
      await settled(provider, request, "running");
    }
    if (provider.pause && provider.resume) {
      await provider.pause(request, patientCall);
      await provider.pause(request, patientCall);
      await settled(provider, request, "paused");
      await provider.resume(request, patientCall);
      await provider.resume(request, patientCall);
      await settled(provider, request, "running");
      await provider.stop(request, { force: false }, patientCall);
      await settled(provider, request, "stopped");
      await assert.rejects(provider.pause(request, patientCall), isKind("conflict"));
      await provider.start(request, patientCall);
      await settled(provider, request, "running");
    }
    if (provider.snapshots) {
      const snapshot = { id: systemRandom.uuid(), name: "conformance" };
      await provider.snapshots.create(request, snapshot, patientCall);
      await provider.snapshots.create(request, snapshot, patientCall);
      assert.ok(await provider.snapshots.observe(request, snapshot, patientCall));
      await provider.snapshots.restore(request, snapshot, patientCall);
      await provider.snapshots.delete(request, snapshot, patientCall);
      await provider.snapshots.delete(request, snapshot, patientCall);
      assert.equal(await provider.snapshots.observe(request, snapshot, patientCall), undefined);
    }
    await provider.delete(request, patientCall);
  });

  test(`${name}: is healthy and its doctor answers`, async () => {
    await using subject = await open();
    await subject.provider.health(patientCall);
    assert.ok((await subject.provider.doctor(patientCall)).length > 0);
  });
}

function withReference(provider: Provider, request: CreateRequest): CreateRequest {
  return { ...request, providerRef: provider.reference(request) };
}

async function inventory(provider: Provider) {
  const found = [];
  for await (const entry of provider.inventory(patientCall)) found.push(entry);
  return found;
}

async function settled(provider: Provider, machine: MachineRef, state: Observation["state"]): Promise<void> {
  let seen: Observation | undefined;
  for (let look = 0; look < maxLooks; look++) {
    seen = await provider.observe(machine, patientCall);
    if (seen?.state === state) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.fail(`machine is ${seen?.state ?? "gone"}, not ${state}`);
}

async function gone(provider: Provider, machine: MachineRef): Promise<void> {
  for (let look = 0; look < maxLooks; look++) {
    if ((await provider.observe(machine, patientCall)) === undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.fail("machine is still there");
}

function isKind(kind: ProviderError["kind"]): (error: unknown) => boolean {
  return (error) => error instanceof ProviderError && error.kind === kind;
}
