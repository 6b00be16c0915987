/** What there is to choose from: what the profile's server offers, and the storages of any profile. */

import { FormApi, IOffers } from './formapi';

/** Ask; what cannot be asked offers nothing. */
export async function offersOf(api: FormApi, profile: string, refresh: boolean): Promise<IOffers> {
  const none = { virtualClusters: [], skus: {}, storages: [], images: [] };
  const [offers, storages] = await Promise.all([
    api.offers(profile, refresh).catch(() => none),
    api.storages(profile).catch((): string[] => [])
  ]);
  const names = new Set([...storages, ...offers.storages.map(each => each.name)]);
  return { ...offers, storages: [...names].map(name => ({ name })) };
}
